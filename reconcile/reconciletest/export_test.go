package reconciletest

// FaultKinds returns all kinds.
func FaultKinds() []FaultKind { return faultKinds() }
