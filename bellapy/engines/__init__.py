"""The engines that compute alignments; jobs use them, they know no job."""
