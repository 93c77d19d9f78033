"""Who is late: the thread that looks, and how long a section may take."""
