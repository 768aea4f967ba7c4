package reconciletest

// FaultKinds gives all kinds.
func FaultKinds() []FaultKind {
	var all []FaultKind
	for _, k := range faultKinds {
		all = append(all, k.kind)
	}
	return all
}
