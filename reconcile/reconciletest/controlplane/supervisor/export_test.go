package supervisor

// Start starts a supervisor program that the test provides.
var Start = start
