// Times SeqAn's gapped X-drop extension of the pairs that `bellapy extend` reads.
//   g++ -O3 -march=native -DNDEBUG -std=c++14 benchmarks/seqan_xdrop.cpp -o seqan_xdrop     (Debian: libseqan2-dev)
//   seqan_xdrop PAIRS K X...      prints for each X: X, CPU milliseconds without reading, sum of the lengths of all alignments
#include <ctime>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <seqan/seeds.h>

struct Pair {
    seqan::Dna5String query, target;
    unsigned queryPos, targetPos;
};

int main(int argc, char ** argv)
{
    if (argc < 4) {
        std::fprintf(stderr, "usage: seqan_xdrop PAIRS K X...\n");
        return 2;
    }
    unsigned const k = std::atoi(argv[2]);
    std::vector<Pair> pairs;
    std::ifstream file(argv[1]);
    for (std::string line; std::getline(file, line);) {
        std::istringstream columns(line);
        std::string query, target;
        Pair pair;
        columns >> query >> pair.queryPos >> target >> pair.targetPos;
        pair.query = query;
        pair.target = target;
        pairs.push_back(pair);
    }
    seqan::Score<int, seqan::Simple> const scoring(1, -1, -1);
    for (int i = 3; i < argc; ++i) {
        int const x = std::atoi(argv[i]);
        long long sum = 0;
        std::clock_t const start = std::clock();
        for (Pair const & pair : pairs) {
            seqan::Seed<seqan::Simple> seed(pair.targetPos, pair.queryPos, k);
            seqan::extendSeed(seed, pair.target, pair.query, seqan::EXTEND_BOTH, scoring, x, seqan::GappedXDrop());
            sum += seqan::endPositionH(seed) - seqan::beginPositionH(seed) + seqan::endPositionV(seed) - seqan::beginPositionV(seed);
        }
        std::printf("%d\t%.1f\t%lld\n", x, 1e3 * (std::clock() - start) / CLOCKS_PER_SEC, sum);
        std::fflush(stdout);
    }
}
