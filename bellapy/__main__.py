"""The command `bellapy`, and `python -m bellapy`."""

from bellapy.compute import stopping


def main() -> None:
    """Run the command line and end the process."""
    stopping.heed()  # before what takes a while to load
    from bellapy.cli import app as cli

    cli.main()


if __name__ == "__main__":
    main()
