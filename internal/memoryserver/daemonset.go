package memoryserver

import (
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var daemonSetKind = builtInKind{
	like: &appsv1.DaemonSet{}, resource: "daemonsets", status: true, counted: true,
	behaviour: behaviour{
		defaults: on(defaultDaemonSet),
		create: on(func(d *appsv1.DaemonSet) {
			if templateGeneration(d) < 1 {
				setTemplateGeneration(d, 1)
			}
		}),
		update: onBoth(func(made, live *appsv1.DaemonSet) {
			generation := templateGeneration(live)
			if !equality.Semantic.DeepEqual(made.Spec.Template, live.Spec.Template) {
				generation++
			}
			setTemplateGeneration(made, generation)
		}),
		check: checked(func(d *appsv1.DaemonSet) field.ErrorList {
			errs := checkSelector(d.Spec.Selector, &d.Spec.Template, "daemonset")
			errs = append(errs, checkForever(&d.Spec.Template, "DaemonSet")...)
			return append(errs, checkNotNegative(specPath, number{"minReadySeconds", &d.Spec.MinReadySeconds},
				number{"revisionHistoryLimit", d.Spec.RevisionHistoryLimit})...)
		}),
		compare: compared(func(made, live *appsv1.DaemonSet) field.ErrorList {
			return immutable(made.Spec.Selector, live.Spec.Selector, "spec", "selector")
		}),
	},
}

func defaultDaemonSet(d *appsv1.DaemonSet) {
	strategy := &d.Spec.UpdateStrategy
	unset(&strategy.Type, appsv1.RollingUpdateDaemonSetStrategyType)
	if strategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		absent(&strategy.RollingUpdate, appsv1.RollingUpdateDaemonSet{})
		absent(&strategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
		absent(&strategy.RollingUpdate.MaxSurge, intstr.FromInt32(0))
	}
	absent(&d.Spec.RevisionHistoryLimit, 10)
	defaultPodSpec(&d.Spec.Template.Spec)
	setTemplateGeneration(d, templateGeneration(d))
}

// templateGeneration was a field once. Now the server shows it as an annotation.
func templateGeneration(d *appsv1.DaemonSet) int64 {
	generation, err := strconv.ParseInt(d.Annotations[appsv1.DeprecatedTemplateGeneration], 10, 64)
	if err != nil {
		return 0
	}
	return generation
}

func setTemplateGeneration(d *appsv1.DaemonSet, generation int64) {
	annotations := map[string]string{}
	maps.Copy(annotations, d.Annotations)
	annotations[appsv1.DeprecatedTemplateGeneration] = strconv.FormatInt(generation, 10)
	d.Annotations = annotations
}
