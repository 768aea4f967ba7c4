package ownedresources

// The control planes of the package, for the tests outside of it: CorpusPlane has controllers.
var (
	ControlPlane = controlPlane
	CorpusPlane  = cluster
)
