package controller

import "sigs.k8s.io/controller-runtime/pkg/predicate"

// Events returns the predicate of the controller's wiring.
func (o *Operator) Events() predicate.Predicate { return o.events() }
