// Package set reconciles the children of owners: it reads inputs, builds the children, applies them, prunes those that are
// not desired any more, and watches what they depend on. A [Reconciliation] is one reconcile of one owner; its method run is
// where to begin.
package set
