package apply_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/internal/owned/ownedtest"
)

// mutate makes the API server change objects of a resource in the namespace, as an admission plug-in does. expression is a list of
// operations of a JSON patch.
func mutate(t *testing.T, env *ownedtest.Server, group, resource, expression string, operations ...admissionregistrationv1.OperationType) {
	t.Helper()
	name := env.Namespace + "-" + resource
	env.CreateForTest(t, &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: env.Namespace}},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: operations,
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: []string{resource}},
				}}},
			},
			Mutations: []admissionregistrationv1.Mutation{{PatchType: admissionregistrationv1.PatchTypeJSONPatch, JSONPatch: &admissionregistrationv1.JSONPatch{Expression: "[" + expression + "]"}}},
		},
	})
	env.CreateForTest(t, &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name},
	})
}

// admittedEnv is a namespace in which admission changes Pods, Jobs and StatefulSets when they are created, as many policies do: it extends the
// node selector of a Pod, names a mirror in the image of a Job, and sets the storage class of a claim template. Nobody may change these
// fields afterwards.
func admittedEnv(t *testing.T) *ownedtest.Server {
	t.Helper()
	env := newRealServer(t)
	env.Create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: "default"}}) // the ServiceAccount, which no controller creates here
	const create = admissionregistrationv1.Create
	mutate(t, env, "", "pods", `JSONPatch{op: "add", path: "/spec/nodeSelector", value: has(object.spec.nodeSelector) ? {"disk": dyn(object.spec.nodeSelector.disk), "pool": dyn("shop")} : {"pool": dyn("shop")}}`, create)
	mutate(t, env, "batch", "jobs", `JSONPatch{op: "replace", path: "/spec/template/spec/containers/0/image", value: "mirror.example.com/" + object.spec.template.spec.containers[0].image}`, create)
	mutate(t, env, "apps", "statefulsets", `JSONPatch{op: "add", path: "/spec/volumeClaimTemplates/0/spec/storageClassName", value: "fast"}`, create)
	// Each attempt builds new objects. The answer to an attempt has fields that a creation may not have, such as the selector of a Job.
	require.Eventually(t, func() bool {
		pod, job, set := admittedPod(env), admittedJob(env), admittedSet(env)
		for _, obj := range []client.Object{pod, job, set} {
			if env.Other.Create(t.Context(), obj, client.DryRunAll) != nil {
				return false
			}
		}
		return pod.Spec.NodeSelector["pool"] == "shop" && job.Spec.Template.Spec.Containers[0].Image != "migrate:1" &&
			set.Spec.VolumeClaimTemplates[0].Spec.StorageClassName != nil
	}, time.Minute, 100*time.Millisecond, "the API server knows the policies")
	return env
}

func admittedPod(env *ownedtest.Server) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: env.Meta(), Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "web", Image: "web:1"}}, NodeSelector: map[string]string{"disk": "ssd"},
	}}
}

func admittedJob(env *ownedtest.Server) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: env.Meta(), Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "migrate", Image: "migrate:1"}},
	}}}}
}

func admittedSet(env *ownedtest.Server) *appsv1.StatefulSet {
	pods := env.Deployment().Spec
	return &appsv1.StatefulSet{ObjectMeta: env.Meta(), Spec: appsv1.StatefulSetSpec{
		Selector: pods.Selector, Template: pods.Template,
		VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}}},
	}}
}

func label(obj client.Object, value string) { obj.GetLabels()["version"] = value }

// A policy changes a field when the object is created, and nobody may change the field afterwards. It must not keep other changes of the
// object from being applied.
func TestFieldsThatAdmissionHasSet(t *testing.T) {
	env := admittedEnv(t)
	tests := map[string]struct {
		reason string
		build  func() client.Object
		change func(obj client.Object)
		is     func(live client.Object) bool
	}{
		"a label of a Pod": {
			reason: "The node selector is replaced as a whole.", build: func() client.Object { return admittedPod(env) },
			change: func(obj client.Object) { label(obj, "2") }, is: func(live client.Object) bool { return live.GetLabels()["version"] == "2" },
		},
		"a label of a Pod without a node selector": {
			reason: "Nobody owns what admission has set alone.", build: func() client.Object {
				pod := admittedPod(env)
				pod.Spec.NodeSelector = map[string]string{}
				return pod
			},
			change: func(obj client.Object) { label(obj, "2") }, is: func(live client.Object) bool { return live.GetLabels()["version"] == "2" },
		},
		"a label of a Job": {
			reason: "The API server names only spec.template in its refusal.", build: func() client.Object { return admittedJob(env) },
			change: func(obj client.Object) { label(obj, "2") }, is: func(live client.Object) bool { return live.GetLabels()["version"] == "2" },
		},
		"the time to live of a Job": {
			reason: "It may be changed.", build: func() client.Object { return admittedJob(env) },
			change: func(obj client.Object) { obj.(*batchv1.Job).Spec.TTLSecondsAfterFinished = new(int32(60)) },
			is:     func(live client.Object) bool { return *live.(*batchv1.Job).Spec.TTLSecondsAfterFinished == 60 },
		},
		"the image of a StatefulSet": {
			reason: "The storage class is in a list that is replaced as a whole.", build: func() client.Object { return admittedSet(env) },
			change: func(obj client.Object) { obj.(*appsv1.StatefulSet).Spec.Template.Spec.Containers[0].Image = "db:2" },
			is: func(live client.Object) bool {
				return live.(*appsv1.StatefulSet).Spec.Template.Spec.Containers[0].Image == "db:2"
			},
		},
	}
	for name, tc := range tests {
		for options, recreate := range map[string][]ownedtest.Option{"": nil, ", with Recreate": {withRecreate()}} {
			t.Run(name+options, func(t *testing.T) {
				env.Applier = apply.New()
				if child := tc.build(); env.Exists(t, child) { // the case before this one has left the object
					require.NoError(t, env.Other.Delete(t.Context(), child, client.GracePeriodSeconds(0), client.PropagationPolicy(metav1.DeletePropagationBackground)))
				}
				before := env.MustApply(t, tc.build(), recreate...)
				changed := tc.build()
				tc.change(changed)
				foreseen, err := env.Diff(t, changed)
				require.NoError(t, err)
				require.NotEmpty(t, foreseen, "a plan foresees it")
				after := env.MustApply(t, changed, recreate...)
				require.True(t, tc.is(after.Object), tc.reason)
				require.Equal(t, before.Object.GetUID(), after.Object.GetUID(), "what has changed may be changed")
				quiet := env.MustApply(t, changed, recreate...)
				require.Equal(t, apply.Unchanged, quiet.Operation, "what admission has set is settled")
				env.Applier = apply.New()
				quiet = env.MustApply(t, changed, recreate...)
				require.Equal(t, apply.Unchanged, quiet.Operation, "also for another process")
			})
		}
	}
}

// Which fields admission has set is found out once. When the object is changed again, finding them costs no request.
func TestFieldsThatAdmissionHasSetAreRemembered(t *testing.T) {
	env := admittedEnv(t)
	set := admittedSet(env)
	env.MustApply(t, set)
	for _, version := range []string{"2", "3", "4"} {
		set = admittedSet(env)
		set.Spec.Template.Spec.Containers[0].Image = "db:" + version
		env.MustApply(t, set)
		sent := env.Requests.Sent()
		if version == "2" {
			require.Contains(t, sent, "POST statefulsets", "a dry run shows what admission makes of it")
			continue
		}
		require.Equal(t, []string{"GET statefulsets", "PATCH statefulsets"}, sent)
	}
}

// The operator desires a new value for a field that admission has set. This value is not taken for the value that admission has set.
func TestNewWishForAFieldThatAdmissionHasSet(t *testing.T) {
	env := admittedEnv(t)
	wish := func() *corev1.Pod {
		pod := admittedPod(env)
		pod.Spec.NodeSelector["disk"] = "nvme"
		return pod
	}
	first := env.MustApply(t, admittedPod(env))
	_, err := env.Apply(t, wish())
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	require.ErrorContains(t, err, "the apply would change spec.nodeSelector", "it names the field")
	_, err = env.Apply(t, wish(), withRecreate())
	require.Error(t, err, "the refusal is known")
	env.Applier = apply.New()
	_, err = env.Apply(t, wish(), withRecreate())
	require.ErrorAs(t, err, new(*owned.WaitingError))
	second := env.MustApply(t, wish(), withRecreate())
	require.NotEqual(t, first.Object.GetUID(), second.Object.GetUID())
	require.Equal(t, map[string]string{"disk": "nvme", "pool": "shop"}, second.Object.(*corev1.Pod).Spec.NodeSelector)
}

// The API server refuses a change of a pod template. The error names the fields that the apply would add, and not the fields that may be
// changed.
func TestRefusalOfATemplateNamesWhatIsAdded(t *testing.T) {
	env := admittedEnv(t)
	env.MustApply(t, admittedJob(env))
	changed := admittedJob(env)
	changed.Spec.TTLSecondsAfterFinished = new(int32(60))
	changed.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "MODE", Value: "shop"}}
	_, err := env.Apply(t, changed)
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	require.ErrorContains(t, err, `(the apply would change spec.template.spec.containers[name="migrate"].env)`)
}

// The operator drops a field, and the apply removes it, although admission has set another field in the same list.
func TestDroppedFieldBesideOneThatAdmissionHasSet(t *testing.T) {
	env := admittedEnv(t)
	set := admittedSet(env)
	set.Spec.VolumeClaimTemplates[0].Spec.VolumeAttributesClassName = new("gold")
	env.MustApply(t, set)
	_, err := env.Apply(t, admittedSet(env))
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	live := &appsv1.StatefulSet{}
	env.Live(t, live)
	require.NotNil(t, live.Spec.VolumeClaimTemplates[0].Spec.VolumeAttributesClassName)
}

// While nothing else changes, a change that the API server has refused is not sent again. After ten minutes it is.
func TestKnownRefusal(t *testing.T) {
	env := newInMemory(t)
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	env.Applier.Clock = clock
	env.MustApply(t, env.Service())
	wrong := env.Service()
	wrong.Spec.Ports[0].Port = 70000
	refusal := func() []string {
		_, err := env.Apply(t, wrong)
		require.True(t, apierrors.IsInvalid(err), "%v", err)
		return env.Requests.Sent()
	}
	require.Contains(t, refusal(), "PATCH services")
	require.Equal(t, []string{"GET services"}, refusal(), "the read of a cache, and no request")
	clock.SetTime(clock.Now().Add(10 * time.Minute))
	require.Contains(t, refusal(), "PATCH services", "the rules of the API server may have changed")
	ownedtest.ByHand(t, env, &corev1.Service{}, func(s *corev1.Service) { s.Labels["by"] = "hand" })
	require.Contains(t, refusal(), "PATCH services", "somebody has changed the object")
	env.MustApply(t, env.Service())
}

// Admission has set fields in the claim templates of a StatefulSet. The option ExpandVolumes still lets the templates grow.
func TestExpandVolumesThatAdmissionHasSet(t *testing.T) {
	env := admittedEnv(t)
	first := env.MustApply(t, admittedSet(env), withExpandVolumes())
	larger := admittedSet(env)
	larger.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
	_, err := env.Apply(t, larger, withExpandVolumes())
	var wait *owned.WaitingError
	require.ErrorAs(t, err, &wait)
	require.Equal(t, apply.ReasonRecreating, ownedtest.ReasonOf(wait))
	require.NoError(t, env.Other.Get(t.Context(), client.ObjectKeyFromObject(env.Owner), env.Owner))
	orphaning := &appsv1.StatefulSet{}
	env.Live(t, orphaning)
	orphaning.Finalizers = nil // no garbage collector runs here to remove the finalizer
	require.NoError(t, env.Other.Update(t.Context(), orphaning))
	second := env.MustApply(t, larger, withExpandVolumes())
	require.NotEqual(t, first.Object.GetUID(), second.Object.GetUID())
	template := second.Object.(*appsv1.StatefulSet).Spec.VolumeClaimTemplates[0].Spec
	require.Equal(t, "2Gi", template.Resources.Requests.Storage().String())
	require.Equal(t, "fast", *template.StorageClassName)
}

// The API server lets nobody remove a toleration from a Pod, and an apply replaces the whole list. So an apply has to send the tolerations
// that others have added.
func TestTolerationsOfOthers(t *testing.T) {
	env := newServer(t)
	env.Create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: "default"}})
	toleration := func(key string) corev1.Toleration {
		return corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
	}
	wish := func(version string, keys ...string) *corev1.Pod {
		pod := admittedPod(env)
		for _, key := range keys {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, toleration(key))
		}
		label(pod, version)
		return pod
	}
	env.MustApply(t, wish("1", "ours"))
	ownedtest.ByHand(t, env, &corev1.Pod{}, func(p *corev1.Pod) { p.Spec.Tolerations = append(p.Spec.Tolerations, toleration("theirs")) })
	for _, keys := range [][]string{{"ours"}, {"ours", "more"}} {
		result := env.MustApply(t, wish("2", keys...))
		require.Equal(t, "2", result.Object.GetLabels()["version"])
		for _, key := range append(keys, "theirs") {
			require.Contains(t, result.Object.(*corev1.Pod).Spec.Tolerations, toleration(key))
		}
	}
}
