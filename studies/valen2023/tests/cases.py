"""Cases of this study for the general tests."""

APPENDING = {"study": ("study", "valen2023", "--quick")}
READING = {"study": ("valen2023", "--from")}
