package ownedresources

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/feature"
	"github.com/opblocks/opblocks/internal/owned/set"
	"github.com/opblocks/opblocks/internal/record"
)

// RunOnce stores its state in an annotation of the owner. A function that copies the owner's annotations into a pod
// template does not see this annotation.
func TestRecordsAreHiddenFromTheFunctions(t *testing.T) {
	env := newEnvInMemory(t)
	env.Owner.Annotations = map[string]string{"example.com/team": "shop"}
	require.NoError(t, env.Other.Update(t.Context(), env.Owner))
	job := Build(func(owner *Shop) *batchv1.Job {
		job := webJob()
		job.Spec.Template.Annotations = owner.Annotations
		return job
	}).RunOnce()
	var seen []map[string]string
	after := BuildFrom(job.Live(), func(owner *Shop, _ *batchv1.Job) (*configMap, error) {
		seen = append(seen, owner.Annotations)
		return nil, nil
	})
	s := Ensure(job, after)
	var first types.UID
	for range 3 {
		requireWaits(t, s.Reconcile(t.Context(), env.Client, env.Owner), "JobRunning")
		env.RereadOwner(t)
		require.Contains(t, env.Owner.Annotations, record.RunPrefix+"web")
		var live batchv1.Job
		env.Live(t, &live)
		require.Nil(t, live.DeletionTimestamp, "its content is the same")
		if first == "" {
			first = live.UID
		}
		require.Equal(t, first, live.UID)
		require.Equal(t, map[string]string{"example.com/team": "shop"}, seen[len(seen)-1])
	}
}

// The function rotateOn of Generate does not see the annotations in which this package stores its state. Otherwise the
// password would be replaced whenever that state changes.
func TestRecordsAreHiddenFromTriggers(t *testing.T) {
	env := newEnvInMemory(t)
	secret := Build(func(*Shop) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	}).Generate("password", 24, func(owner *Shop) string { return fmt.Sprint(owner.Annotations) })
	s := Ensure(secret, Build(func(*Shop) *batchv1.Job { return contentJob() }).RunOnce()) // the Secret is built before the annotation is written
	var first []byte
	for range 3 {
		requireWaits(t, s.Reconcile(t.Context(), env.Client, env.Owner), "JobRunning")
		env.RereadOwner(t)
		require.Contains(t, env.Owner.Annotations, record.RunPrefix+"web")
		var live corev1.Secret
		env.Live(t, &live)
		if first == nil {
			first = live.Data["password"]
		}
		require.Equal(t, first, live.Data["password"])
	}
}

// victims creates objects that do not belong to the owner. Whatever a user writes into the owner, the operator must not
// change or delete these objects.
func (env *serverEnv) victims(t *testing.T, elsewhere *serverEnv) (all []client.Object) {
	t.Helper()
	labels := map[string]string{"app": "web"}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyAlways, Containers: []corev1.Container{{Name: "server", Image: "server:1"}},
	}}
	ofAnother := &owned.Owner{Namespace: env.Namespace, Reference: metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Shop", Name: "web", UID: "another"}}
	marked := env.createPod(t, "web-1", labels)
	marked.Labels = map[string]string{"app": "web", record.OwnerUID: "another"}
	marked.Annotations = ofAnother.MarkFor(owned.ByMark).Annotations(record.NameOf(feature.PodKind.GroupKind(), marked))
	marked.Annotations[record.ExpansionPrefix+"web"] = fmt.Sprintf(`{"set":"children","namespace":%q,"name":"web"}`, env.Namespace)
	require.NoError(t, env.Other.Update(t.Context(), marked))
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: "victim"}, Spec: contentJob().Spec}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: "victim"}, Spec: appsv1.StatefulSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template,
	}}
	require.NoError(t, env.Other.Create(t.Context(), job))
	require.NoError(t, env.Other.Create(t.Context(), set))
	return []client.Object{
		env.createPod(t, "victim-0", labels), env.createPod(t, "web-0", labels), elsewhere.createPod(t, "victim-0", labels), elsewhere.createPod(t, "web-0", labels),
		marked, job, set,
	}
}

// forgeries are values that somebody may write under each of the annotations that this package reads from owners. %d
// stands for another namespace, %n for the namespace of the owner, and %j for the UID of somebody else's Job.
var forgeries = map[string][]struct{ name, value, reason string }{
	record.ExpansionPrefix: {
		{"victim", `{"set":"children","namespace":"%n","name":"victim","selector":{"matchLabels":{"app":"web"}}}`, "pods without a controller"},
		{"web", `{"set":"children","namespace":"%n","name":"web","selector":{"matchLabels":{"app":"web"}}}`, "pods that have the name of ours"},
		{"web", `{"set":"children","namespace":"%n","name":"victim","selector":{"matchLabels":{"app":"web"}}}`, "another name than the key's"},
		{"%d_victim", `{"set":"children","namespace":"%d","name":"victim","selector":{"matchLabels":{"app":"web"}}}`, "another namespace"},
		{"web", `{"set":"children","namespace":"%d","name":"web"}`, "another namespace than the key's"},
		{"victim", `{"set":"children","namespace":"%n","name":"victim","selector":{}}`, "all pods"},
		{"web", `{"set":"children","namespace":"%n","name":"../pods/victim-0"}`, "a path"},
		{"web", `{"set":"children","namespace":"..","name":"web"}`, "a path"},
		{"web", `{"set":"children","namespace":"%n","name":"web","replicas":2147483647}`, "more replicas than the operator allows"},
		{"web", `{"set":"children","namespace":"%n","name":"web","replicas":-1}`, "a number that the API server refuses"},
		{"web", `{"set":"children","namespace":"%n","name":"web","replicas":1e99}`, "a number that is none"},
		{"web", `{"set":7,"name":[]}`, "other types"},
		{"web", `{"set":`, "no JSON"},
		{"web", strings.Repeat("[", 100_000), "deep JSON"},
		{"victim", `{"set":"children","namespace":"%n","name":"victim","selector":{"matchLabels":{"app":"` + strings.Repeat("x", 200_000) + `"}}}`, "a huge value"},
		{strings.Repeat("v", 63), `{"set":"children","namespace":"%n","name":"` + strings.Repeat("v", 200_000) + `"}`, "a huge name"},
	},
	record.RunPrefix: {
		{"victim", "v1:complete:0123456789abcdef0123456789abcdef", "the Job of somebody else"},
		{"victim", "v1:started:0123456789abcdef0123456789abcdef:%j", "the same"},
		{"victim", "v1:failed:0123456789abcdef0123456789abcdef", "the same"},
		{"%d_victim", "v1:started:0123456789abcdef0123456789abcdef:%j", "another namespace"},
		{"web", "v1:started:0123456789abcdef0123456789abcdef:%j", "the UID of the Job of somebody else"},
		{"web", "v1:started:../..:../..", "a path"},
		{"web", "v2:complete:x", "a version that does not exist"},
		{"web", "::::::", "nothing"},
		{"web", `{"end":"complete"}`, "JSON"},
		{"web", "v1:complete:" + strings.Repeat("x", 200_000), "a huge value"},
	},
}

// TestForgedRecords writes forged values into annotations of an owner. A user who may write the owner and nothing else could do
// that. No object of others is changed or deleted, and the owner can be deleted.
func TestForgedRecords(t *testing.T) {
	for _, prefix := range set.RecordPrefixes {
		require.NotEmpty(t, forgeries[prefix], "forge the values of %s too", prefix)
		for i, forged := range forgeries[prefix] {
			for _, desired := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s%d/Desired%t", strings.TrimSuffix(prefix, "/"), i, desired), func(t *testing.T) {
					t.Parallel()
					env, elsewhere := newServerEnv(t), newServerEnv(t)
					victims := env.victims(t, elsewhere)
					fill := strings.NewReplacer("%n", env.Namespace, "%d", elsewhere.Namespace, "%j", string(victims[5].GetUID()))
					env.forge(t, prefix+fill.Replace(forged.name), fill.Replace(forged.value), desired)
					for _, victim := range victims {
						before := victim.DeepCopyObject().(client.Object)
						require.NoError(t, env.Other.Get(t.Context(), client.ObjectKeyFromObject(victim), victim))
						require.Empty(t, cmp.Diff(before, victim), "%s\n%T %s", forged.reason, victim, victim.GetName())
					}
				})
			}
		}
	}
}

// forge annotates the owner, reconciles it three times, and runs Finalize.
func (env *serverEnv) forge(t *testing.T, key, value string, desired bool) {
	t.Helper()
	s := forgedSet(desired)
	s.SetName("children")
	env.Owner.Annotations = map[string]string{key: value}
	require.NoError(t, env.Other.Update(t.Context(), env.Owner))
	for range 3 {
		env.RereadOwner(t)
		if err := s.Reconcile(t.Context(), env.Client, env.Owner); err != nil {
			require.ErrorAs(t, err, new(*owned.WaitingError))
		}
	}
	if desired {
		var set appsv1.StatefulSet
		env.Live(t, &set)
		require.EqualValues(t, 1, *set.Spec.Replicas, "the API server's default")
		var job batchv1.Job
		env.Live(t, &job)
		require.False(t, *job.Spec.Suspend, "it has started")
	}
	env.RereadOwner(t)
	require.NoError(t, s.Finalize(t.Context(), env.Client, env.Owner), "the deletion does not hang")
	require.NotContains(t, env.Requests.Sent(), "DELETE pods")
}

func forgedSet(desired bool) *ChildSet[*Shop] {
	return Ensure(
		Build(func(*Shop) *appsv1.StatefulSet {
			if !desired {
				return nil
			}
			labels := map[string]string{"app": "web"}
			template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}}
			template.Spec.Containers = []corev1.Container{{Name: "server", Image: "server:1"}}
			return &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.StatefulSetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template,
			}}
		}).ExpandVolumes(),
		Build(func(*Shop) *batchv1.Job {
			if !desired {
				return nil
			}
			return contentJob()
		}).RunOnce())
}
