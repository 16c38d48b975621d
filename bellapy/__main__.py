"""The command `bellapy`, and `python -m bellapy`."""

from bellapy import stopping


def main() -> None:
    """Run the command line and end the process."""
    stopping.heed()  # before what takes a while to load
    from bellapy import cli

    cli.main()


if __name__ == "__main__":
    main()
