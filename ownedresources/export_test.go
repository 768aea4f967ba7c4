package ownedresources

// CorpusPlane is the control plane with controllers, for the tests outside of the package.
var CorpusPlane = corpusPlane
