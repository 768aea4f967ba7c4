package builtin

import (
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var daemonSetKind = description{
	prototype: &appsv1.DaemonSet{}, resource: "daemonsets", hasStatus: true, hasGeneration: true,
	behaviour: behaviour{
		setDefaults: forObject(defaultDaemonSet),
		prepareForCreate: forObject(func(d *appsv1.DaemonSet) {
			if templateGeneration(d) < 1 {
				setTemplateGeneration(d, 1)
			}
		}),
		prepareForUpdate: forUpdate(func(obj, live *appsv1.DaemonSet) {
			generation := templateGeneration(live)
			if !equality.Semantic.DeepEqual(obj.Spec.Template, live.Spec.Template) {
				generation++
			}
			setTemplateGeneration(obj, generation)
		}),
		validate: forValidation(func(d *appsv1.DaemonSet) field.ErrorList {
			errs := validateSelector(d.Spec.Selector, &d.Spec.Template, "daemonset")
			errs = append(errs, validateLongRunningTemplate(&d.Spec.Template, "DaemonSet")...)
			return append(errs, validateNotNegative(specPath, numberField{"minReadySeconds", &d.Spec.MinReadySeconds},
				numberField{"revisionHistoryLimit", d.Spec.RevisionHistoryLimit})...)
		}),
		validateUpdate: forUpdateValidation(func(obj, live *appsv1.DaemonSet) field.ErrorList {
			return immutable(obj.Spec.Selector, live.Spec.Selector, "spec", "selector")
		}),
	},
}

func defaultDaemonSet(d *appsv1.DaemonSet) {
	strategy := &d.Spec.UpdateStrategy
	setIfZero(&strategy.Type, appsv1.RollingUpdateDaemonSetStrategyType)
	if strategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		setIfNil(&strategy.RollingUpdate, appsv1.RollingUpdateDaemonSet{})
		setIfNil(&strategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
		setIfNil(&strategy.RollingUpdate.MaxSurge, intstr.FromInt32(0))
	}
	setIfNil(&d.Spec.RevisionHistoryLimit, 10)
	defaultPodSpec(&d.Spec.Template.Spec)
	setTemplateGeneration(d, templateGeneration(d))
}

// templateGeneration returns the generation of a DaemonSet's template, 0 if there is none. The server keeps it in an annotation, since the
// former field no longer exists.
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
