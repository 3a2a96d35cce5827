// A library has a source. This one is for its precompiled header, which the tests of the server
// share.
