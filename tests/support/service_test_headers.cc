// A library has a source; this one is for its precompiled header, which the tests of the server share.
