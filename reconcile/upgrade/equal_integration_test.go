package upgrade_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

type budgetDeployment = func(*budget) *appsv1.Deployment

func deployment(change func(*appsv1.Deployment)) budgetDeployment {
	return func(o *budget) *appsv1.Deployment {
		d := ownedresources.NewDeployment(o, nil, corev1.Container{Name: "web", Image: "nginx:1.27", Env: []corev1.EnvVar{{Name: "MODE", Value: "one"}}})
		d.Spec.Replicas = new(int32(2))
		change(d)
		return d
	}
}

func statefulSet(size string, change func(*appsv1.StatefulSet)) func(*budget) *appsv1.StatefulSet {
	return func(o *budget) *appsv1.StatefulSet {
		s := ownedresources.NewStatefulSet(o, nil, corev1.Container{Name: "db", Image: "db:1"})
		s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
			ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: claimSpec(size),
		}}
		change(s)
		return s
	}
}

func claimSpec(size string) corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
	}
}

func claim(size string) func(*budget) *corev1.PersistentVolumeClaim {
	return func(o *budget) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: o.Name}, Spec: claimSpec(size)}
	}
}

func migration(image string) func(*budget) *batchv1.Job {
	return func(o *budget) *batchv1.Job {
		return &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: o.Name},
			Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "migrate", Image: image}},
			}}},
		}
	}
}

func secret(data map[string]string) func(*budget) *corev1.Secret {
	return func(o *budget) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: o.Name}, StringData: data}
	}
}

func image(name string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = name }
}

func TestPlanEqualsWhatHappens(t *testing.T) {
	same := func(*appsv1.Deployment) {}
	unset := func(d *appsv1.Deployment) { d.Spec.Replicas = nil }
	for name, tc := range map[string]upgradeCase{
		"an image": {
			reason: "the most common upgrade",
			before: func() steps { return children(ownedresources.Build(deployment(same))) }, after: func() steps { return children(ownedresources.Build(deployment(image("nginx:1.28")))) },
			want: []planned{{Action: "apply", Kind: "Deployment", Effects: []string{"its pods are replaced"}}},
		},
		"replicas that are handed over": {
			reason: "they are not desired any more, and stay as they are: an autoscaler is to set them",
			before: func() steps { return children(ownedresources.Build(deployment(same))) },
			after: func() steps {
				return children(ownedresources.Build(deployment(func(d *appsv1.Deployment) {
					unset(d)
					d.Labels["new"] = "label"
				})))
			},
			want: []planned{{Action: "apply", Kind: "Deployment"}},
		},
		"a field that is not desired any more": {
			reason: "the first apply after the POST takes over its fields, and removes it",
			before: func() steps { return children(ownedresources.Build(deployment(same))) },
			after: func() steps {
				return children(ownedresources.Build(deployment(func(d *appsv1.Deployment) {
					d.Spec.Template.Spec.Containers[0].Env = nil
				})))
			},
			want: []planned{{Action: "apply", Kind: "Deployment", Effects: []string{"its pods are replaced"}}},
		},
		"a selector that changes": {
			reason: "it is immutable, so the Deployment is recreated, which has the option Recreate",
			before: func() steps { return children(ownedresources.Build(deployment(same)).Recreate()) },
			after: func() steps {
				return children(ownedresources.Build(deployment(func(d *appsv1.Deployment) {
					d.Spec.Selector.MatchLabels["new"], d.Spec.Template.Labels["new"] = "label", "label"
				})).Recreate())
			},
			want: []planned{{Action: "recreate", Kind: "Deployment", Effects: []string{"all its pods are deleted, and new ones start"}}},
		},
		"a claim that shrinks": {
			reason: "with Recreate its data is lost",
			before: func() steps { return children(ownedresources.Build(claim("2Gi")).Recreate()) }, after: func() steps { return children(ownedresources.Build(claim("1Gi")).Recreate()) },
			want: []planned{{Action: "recreate", Kind: "PersistentVolumeClaim", LosesData: true, Effects: []string{"the new claim is empty; the old volume is kept only if its reclaim policy is Retain"}}},
		},
		"volumes that grow": {
			reason: "the StatefulSet is replaced without its pods",
			before: func() steps {
				return growing(ownedresources.Build(statefulSet("1Gi", func(*appsv1.StatefulSet) {})).ExpandVolumes())
			},
			after: func() steps {
				return growing(ownedresources.Build(statefulSet("2Gi", func(*appsv1.StatefulSet) {})).ExpandVolumes())
			},
			want: []planned{{Action: "replace", Kind: "StatefulSet", Effects: []string{"its pods run on", "the claims of data grow from 1Gi to 2Gi"}}},
		},
		"a StatefulSet that rolls out by hand": {
			reason: "with OnDelete nothing restarts",
			before: func() steps {
				return children(ownedresources.Build(statefulSet("1Gi", func(s *appsv1.StatefulSet) { s.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType })))
			},
			after: func() steps {
				return children(ownedresources.Build(statefulSet("1Gi", func(s *appsv1.StatefulSet) {
					s.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
					s.Spec.Template.Spec.Containers[0].Image = "db:2"
				})))
			},
			want: []planned{{Action: "apply", Kind: "StatefulSet", Effects: []string{"its pods stay as they are until somebody deletes them"}}},
		},
		"a child that is new, and one that goes": {
			reason: "creation and pruning",
			before: func() steps {
				return children(ownedresources.Build(deployment(same)), ownedresources.Build(settings("one")))
			},
			after: func() steps {
				return children(ownedresources.Build(deployment(same)), ownedresources.Build(secret(map[string]string{"password": "canary"})), noSettings())
			},
			want: []planned{{Action: "delete", Kind: "ConfigMap"}, {Action: "create", Kind: "Secret"}},
		},
		"a child that moves to another set": {
			reason: "it is applied by its new set, and not deleted by the old one",
			before: func() steps {
				return steps{named("one", ownedresources.Build(settings("one")), ownedresources.Build(deployment(same))), named("two", noSettings())}
			},
			after: func() steps {
				return steps{named("one", noSettings(), ownedresources.Build(deployment(same))), named("two", ownedresources.Build(settings("one")))}
			},
			want: []planned{{Action: "apply", Kind: "ConfigMap"}},
		},
		"a child that is built from a live one": {
			reason: "it is built from the live object, or from the answer to its dry run",
			before: func() steps { return children(ownedresources.Build(settings("one"))) },
			after: func() steps {
				config := ownedresources.Build(settings("two"))
				return children(config, ownedresources.BuildFrom(config.Live(), func(o *budget, live *corev1.ConfigMap) (*corev1.Secret, error) {
					return secret(map[string]string{"content": live.Data["content"]})(o), nil
				}))
			},
			want: []planned{{Action: "apply", Kind: "ConfigMap"}, {Action: "create", Kind: "Secret"}},
		},
		"a set that is renamed": {
			reason: "each child is applied once, to store the name, and none is deleted",
			before: func() steps { return steps{named("one", ownedresources.Build(settings("one")))} },
			after: func() steps {
				return steps{reconcile.Named("two", ownedresources.Ensure(ownedresources.Build(settings("one")))).FormerNames("one")}
			},
			want: []planned{{Action: "apply", Kind: "ConfigMap"}},
		},
		"children of a list": {
			reason: "one is new, one goes, one stays",
			before: func() steps { return children(ownedresources.BuildEach(numbered(1, 2))) },
			after:  func() steps { return children(ownedresources.BuildEach(numbered(2, 3))) },
			want:   []planned{{Action: "delete", Kind: "ConfigMap"}, {Action: "create", Kind: "ConfigMap"}},
		},
		"a Secret": {
			reason: "values are hidden",
			before: func() steps { return children(ownedresources.Build(secret(map[string]string{"password": "canary-1"}))) }, after: func() steps { return children(ownedresources.Build(secret(map[string]string{"password": "canary-2"}))) },
			want: []planned{{Action: "apply", Kind: "Secret"}},
		},
		"a generated key": {
			reason: "a new key is added; the old one keeps its value, which the operator does not know",
			before: func() steps { return children(ownedresources.Build(secret(nil)).Generate("password", 16)) },
			after: func() steps {
				return children(ownedresources.Build(secret(nil)).Generate("password", 16).Generate("token", 16))
			},
			want: []planned{{Action: "apply", Kind: "Secret"}},
		},
		"fields that are only for the creation": {
			reason: "CreateOnly hands them over, so they stay",
			before: func() steps { return children(ownedresources.Build(deployment(same))) },
			after: func() steps {
				return children(ownedresources.Build(deployment(func(d *appsv1.Deployment) {
					image("nginx:1.28")(d)
					d.Spec.Replicas = new(int32(5))
				})).CreateOnly(unset))
			},
			want: []planned{{Action: "apply", Kind: "Deployment", Effects: []string{"its pods are replaced"}}},
		},
		"a Job that runs once": {
			reason: "another content is another run",
			before: func() steps { return children(ownedresources.Build(migration("v1")).RunOnce()) }, after: func() steps { return children(ownedresources.Build(migration("v2")).RunOnce()) },
			between: func(t *testing.T, e *env) { e.finishJobs(t) },
			want:    []planned{{Action: "recreate", Kind: "Job", Effects: []string{"its pods are deleted, and it runs again"}}},
		},
		"a field of another writer": {
			reason: "an apply does not touch it",
			before: func() steps { return children(ownedresources.Build(deployment(same))) }, after: func() steps { return children(ownedresources.Build(deployment(image("nginx:1.28")))) },
			between: func(t *testing.T, e *env) {
				d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "web"}}
				patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"template":{"metadata":{"annotations":{"example.com/restarted":"now"}}}}}`))
				require.NoError(t, e.client.Patch(t.Context(), d, patch))
			},
			want: []planned{{Action: "apply", Kind: "Deployment", Effects: []string{"its pods are replaced"}}},
		},
		"a mutating policy": {
			reason: "what it adds to an object that is applied is in the plan",
			before: func() steps { return children(ownedresources.Build(settings("one"))) }, after: func() steps { return children(ownedresources.Build(settings("two"))) },
			between: func(t *testing.T, e *env) { e.mutate(t) },
			want:    []planned{{Action: "apply", Kind: "ConfigMap"}},
		},
		"drift": {
			reason: "what another writer has changed is repaired, also without an upgrade",
			before: func() steps { return children(ownedresources.Build(settings("one"))) }, after: func() steps { return children(ownedresources.Build(settings("one"))) },
			between: func(t *testing.T, e *env) {
				m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "web"}}
				require.NoError(t, e.client.Patch(t.Context(), m, client.RawPatch(types.MergePatchType, []byte(`{"data":{"content":"theirs"}}`))))
			},
			want: []planned{{Action: "apply", Kind: "ConfigMap"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.compare(t)
		})
	}
}

// numbered returns ConfigMaps with these numbers.
func numbered(numbers ...int) func(*budget) ([]*corev1.ConfigMap, error) {
	return func(o *budget) (all []*corev1.ConfigMap, err error) {
		for _, n := range numbers {
			all = append(all, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", o.Name, n)}})
		}
		return all, nil
	}
}

// noSettings is a child without objects.
func noSettings() ownedresources.AnyChild[*budget] {
	return ownedresources.BuildEach(func(*budget) ([]*corev1.ConfigMap, error) { return nil, nil })
}

// growing returns the step of a StatefulSet whose volumes may be enlarged. It also watches PersistentVolumeClaims: without a
// manager, the operator reads claims and pods with its client, which reads only kinds that a step watches.
func growing(all ...ownedresources.AnyChild[*budget]) steps {
	nothing := reconcile.Func(func(context.Context, client.Client, *budget) error { return nil })
	nobody := func(context.Context, client.Reader, *corev1.PersistentVolumeClaim) []ctrl.Request { return nil }
	nobodyOfPods := func(context.Context, client.Reader, *corev1.Pod) []ctrl.Request { return nil }
	return append(children(all...), reconcile.Named("reads", nothing,
		reconcile.Watching(&corev1.PersistentVolumeClaim{}, nobody), reconcile.Watching(&corev1.Pod{}, nobodyOfPods)))
}

// mutate creates an admission policy that sets an annotation on each ConfigMap of the namespace when it is written.
func (e *env) mutate(t *testing.T) {
	t.Helper()
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: e.namespace},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			FailurePolicy: new(admissionregistrationv1.Fail), ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: e.namespace}},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
				}}},
			},
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType:          admissionregistrationv1.PatchTypeApplyConfiguration,
				ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{Expression: `Object{metadata: Object.metadata{annotations: {"example.com/policy": "seen"}}}`},
			}},
		},
	}
	binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: e.namespace}, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: e.namespace},
	}
	for _, obj := range []client.Object{policy, binding} {
		require.NoError(t, e.client.Create(t.Context(), obj))
		t.Cleanup(func() { require.NoError(t, e.client.Delete(context.Background(), obj)) })
	}
	require.Eventually(t, func() bool { // the API server reads policies in the background
		probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "probe"}}
		return e.client.Create(t.Context(), probe, client.DryRunAll) == nil && probe.Annotations["example.com/policy"] != ""
	}, controlplane.Patience, 50*time.Millisecond)
}
