package memoryserver

import (
	"fmt"
	"maps"
	"math"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

var jobKind = builtInKind{
	like: &batchv1.Job{}, resource: "jobs", status: true, counted: true, orphans: true,
	behaviour: behaviour{
		defaults: on(defaultJob),
		create:   on(selectOwnPods),
		check:    checked(checkJob),
		compare:  compared(compareJobs),
	},
}

func defaultJob(job *batchv1.Job) {
	defaultJobSpec(&job.Spec)
	if len(job.Labels) == 0 {
		job.Labels = job.Spec.Template.Labels // the same map: what is added to the template is added here
	}
	if job.Spec.Completions == nil && job.Spec.Parallelism == nil {
		job.Spec.Completions = ptr.To[int32](1)
	}
	absent(&job.Spec.Parallelism, 1)
	limit := int32(6)
	if job.Spec.BackoffLimitPerIndex != nil {
		limit = math.MaxInt32
	}
	absent(&job.Spec.BackoffLimit, limit)
	absent(&job.Spec.CompletionMode, batchv1.NonIndexedCompletion)
	absent(&job.Spec.Suspend, false)
	replacement := batchv1.TerminatingOrFailed
	if job.Spec.PodFailurePolicy != nil {
		replacement = batchv1.Failed
	}
	absent(&job.Spec.PodReplacementPolicy, replacement)
	absent(&job.Spec.ManualSelector, false)
}

// defaultJobSpec fills in what the template of a CronJob gets too.
func defaultJobSpec(spec *batchv1.JobSpec) {
	defaultPodSpec(&spec.Template.Spec)
	if spec.PodFailurePolicy == nil {
		return
	}
	for _, rule := range spec.PodFailurePolicy.Rules {
		for i := range rule.OnPodConditions {
			unset(&rule.OnPodConditions[i].Status, corev1.ConditionTrue)
		}
	}
}

// selectOwnPods makes a job find its pods by its UID, so that jobs of the same template do not mix.
func selectOwnPods(job *batchv1.Job) {
	if ptr.Deref(job.Spec.ManualSelector, false) {
		return
	}
	absentMap(&job.Spec.Template.Labels)
	maps.Copy(job.Spec.Template.Labels, ownLabels(job))
	absent(&job.Spec.Selector, metav1.LabelSelector{})
	absentMap(&job.Spec.Selector.MatchLabels)
	job.Spec.Selector.MatchLabels[batchv1.ControllerUidLabel] = string(job.UID)
}

func absentMap(m *map[string]string) {
	if *m == nil {
		*m = map[string]string{}
	}
}

func checkJob(job *batchv1.Job) field.ErrorList {
	errs := checkJobSpec(&job.Spec, specPath)
	selector := job.Spec.Selector
	if selector == nil {
		errs = append(errs, field.Required(specPath.Child("selector"), ""))
	}
	if parsed, err := metav1.LabelSelectorAsSelector(selector); err == nil && !parsed.Matches(labels.Set(job.Spec.Template.Labels)) {
		errs = append(errs, field.Invalid(specPath.Child("template", "metadata", "labels"), job.Spec.Template.Labels, "`selector` does not match template `labels`"))
	}
	if selector == nil || ptr.Deref(job.Spec.ManualSelector, false) {
		return errs
	}
	own := ownLabels(job)
	for _, key := range slices.Sorted(maps.Keys(own)) {
		if job.Spec.Template.Labels[key] != own[key] {
			errs = append(errs, field.Required(specPath.Child("template", "metadata", "labels").Key(key), "must be '"+own[key]+"'"))
		}
	}
	if parsed, err := metav1.LabelSelectorAsSelector(selector); err == nil && !parsed.Matches(labels.Set(own)) {
		errs = append(errs, field.Invalid(specPath.Child("selector"), selector, "`selector` not auto-generated"))
	}
	return errs
}

// ownLabels are those by which a job finds its pods. They once had no domain.
func ownLabels(job *batchv1.Job) map[string]string {
	return map[string]string{
		"job-name": job.Name, batchv1.JobNameLabel: job.Name,
		"controller-uid": string(job.UID), batchv1.ControllerUidLabel: string(job.UID),
	}
}

func checkJobSpec(spec *batchv1.JobSpec, path *field.Path) field.ErrorList {
	errs := checkNotNegative(path, number{"parallelism", spec.Parallelism}, number{"completions", spec.Completions},
		number{"backoffLimit", spec.BackoffLimit}, number{"ttlSecondsAfterFinished", spec.TTLSecondsAfterFinished})
	errs = append(errs, checkPodTemplate(&spec.Template, path.Child("template"))...)
	if spec.Template.Spec.RestartPolicy == corev1.RestartPolicyAlways {
		errs = append(errs, field.Required(path.Child("template", "spec", "restartPolicy"),
			fmt.Sprintf("valid values: %q, %q", corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)))
	}
	return errs
}

// compareJobTemplates lets a suspended job that has not started change where it runs and with what
// resources.
func compareJobTemplates(made, live *batchv1.Job) field.ErrorList {
	if !ptr.Deref(live.Spec.Suspend, false) || live.Status.StartTime != nil || live.Status.Active > 0 {
		return immutable(&made.Spec.Template, &live.Spec.Template, "spec", "template")
	}
	spec, allowed := &made.Spec.Template.Spec, live.Spec.Template.Spec.DeepCopy()
	allowed.NodeSelector, allowed.Tolerations, allowed.SchedulingGates = spec.NodeSelector, spec.Tolerations, spec.SchedulingGates
	allowResources(spec.Containers, allowed.Containers)
	allowResources(spec.InitContainers, allowed.InitContainers)
	return immutable(*spec, *allowed, "spec", "template", "spec")
}

func allowResources(made, allowed []corev1.Container) {
	for i := range allowed {
		if i < len(made) {
			allowed[i].Resources = made[i].Resources
		}
	}
}

func compareJobs(made, live *batchv1.Job) field.ErrorList {
	errs := immutable(made.Spec.Selector, live.Spec.Selector, "spec", "selector")
	if ptr.Deref(made.Spec.CompletionMode, batchv1.NonIndexedCompletion) != batchv1.IndexedCompletion {
		errs = append(immutable(made.Spec.Completions, live.Spec.Completions, "spec", "completions"), errs...)
	}
	errs = append(errs, compareJobTemplates(made, live)...)
	errs = append(errs, immutable(made.Spec.CompletionMode, live.Spec.CompletionMode, "spec", "completionMode")...)
	errs = append(errs, immutable(made.Spec.PodFailurePolicy, live.Spec.PodFailurePolicy, "spec", "podFailurePolicy")...)
	errs = append(errs, immutable(made.Spec.BackoffLimitPerIndex, live.Spec.BackoffLimitPerIndex, "spec", "backoffLimitPerIndex")...)
	return append(errs, immutable(made.Spec.ManagedBy, live.Spec.ManagedBy, "spec", "managedBy")...)
}
