"""python -m bellapy"""

from bellapy.cli import main

main()
