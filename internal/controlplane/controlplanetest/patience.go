package controlplanetest

import "time"

// Patience is the timeout of a test that waits for an event. It is long, because the machine may run other tests at the
// same time. A test that passes never waits for the end of it.
//
// A test must not show by a timeout that something did not happen. It waits instead for another event that comes later,
// such as the pass of an object that was created after it.
const Patience = 5 * time.Minute
