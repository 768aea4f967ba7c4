package memoryserver

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var replicaSetKind = builtInKind{
	like: &appsv1.ReplicaSet{}, resource: "replicasets", status: true, counted: true, scaled: true,
	behaviour: behaviour{
		defaults: on(func(r *appsv1.ReplicaSet) {
			absent(&r.Spec.Replicas, 1)
			defaultPodSpec(&r.Spec.Template.Spec)
		}),
		check: checked(func(r *appsv1.ReplicaSet) field.ErrorList {
			errs := checkNotNegative(specPath, number{"replicas", r.Spec.Replicas}, number{"minReadySeconds", &r.Spec.MinReadySeconds})
			errs = append(errs, checkSelector(r.Spec.Selector, &r.Spec.Template, "deployment")...)
			return append(errs, checkForever(&r.Spec.Template, "ReplicaSet")...)
		}),
		compare: compared(func(made, live *appsv1.ReplicaSet) field.ErrorList {
			return immutable(made.Spec.Selector, live.Spec.Selector, "spec", "selector")
		}),
		checkStatus: checked(func(r *appsv1.ReplicaSet) field.ErrorList {
			s := &r.Status
			return checkReplicas(s.Replicas, s.ReadyReplicas, number{"fullyLabeledReplicas", &s.FullyLabeledReplicas},
				number{"readyReplicas", &s.ReadyReplicas}, number{"availableReplicas", &s.AvailableReplicas})
		}),
	},
}
