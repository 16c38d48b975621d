"""Messages to the user."""

from __future__ import annotations

from threading import Thread

from bellapy.report.log import FOR_ALL, logger, quietly, set_up_logging


def test_a_quiet_thread_does_not_silence_others(capsys):
    set_up_logging()
    with quietly():
        logger.warning("from the quiet one")
        logger.error("an error of it")
        logger.info("of the program", extra=FOR_ALL)
        other = Thread(target=logger.info, args=("from another",))
        other.start()
        other.join()
    logger.info("afterwards")
    assert capsys.readouterr().err.splitlines() == [
        "[bellapy] an error of it", "[bellapy] of the program", "[bellapy] from another", "[bellapy] afterwards"
    ]  # fmt: skip
