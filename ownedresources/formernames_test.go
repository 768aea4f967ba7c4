package ownedresources

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/record"
	"github.com/opblocks/opblocks/reconcile"
)

// numbered builds one ConfigMap for each shard.
func numbered(namespace string, options ...childOption) *Child[*Shop, *configMap] {
	return with(BuildEach(func(shop *Shop) (all []*configMap, err error) {
		for i := range int(shop.Spec.Shards) {
			all = append(all, namedConfigMap(namespace, fmt.Sprint(shop.Name, "-", i)))
		}
		return all, nil
	}), options...)
}

// A new release renames the step of a set that needs a finalizer. The new release finds, prunes and removes the
// objects that the earlier release wrote. The owner can be deleted while the new release runs, and before it starts.
func TestFormerNames(t *testing.T) {
	one := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
	}
	always := *one.DeepCopy()
	always.Spec.RestartPolicy = corev1.RestartPolicyAlways
	tests := map[string]struct {
		reason string
		set    func(env *serverEnv) *ChildSet[*Shop]
		child  client.Object
		pruned client.Object // the object that is pruned when shards changes from 2 to 1; nil if shards has no effect
		stays  bool          // the child stays when the owner is deleted
	}{
		"Anywhere": {
			reason: "the children are found by their marks",
			set:    func(env *serverEnv) *ChildSet[*Shop] { return Ensure(numbered(env.elsewhere, withAnywhere())) },
			child:  namedConfigMap("other", "web-0"), pruned: namedConfigMap("other", "web-1"),
		},
		"Retain": {
			reason: "the children stay and keep their marks",
			set: func(*serverEnv) *ChildSet[*Shop] {
				return Ensure(numbered("", withRetain(func(*Shop) bool { return true })))
			},
			child: namedConfigMap("", "web-0"), stays: true,
		},
		"RemoveInOrder": {
			reason: "all children are removed by the set",
			set: func(*serverEnv) *ChildSet[*Shop] {
				first := Build(func(shop *Shop) *corev1.Secret { return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: shop.Name}} })
				return Ensure(first, numbered("").After(first)).RemoveInOrder()
			},
			child: namedConfigMap("", "web-0"), pruned: namedConfigMap("", "web-1"),
		},
		"RunOnce": {
			reason: "the Job has a finalizer of its own",
			set: func(*serverEnv) *ChildSet[*Shop] {
				return Ensure(Build(func(shop *Shop) *batchv1.Job {
					return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: shop.Name}, Spec: batchv1.JobSpec{Template: one}}
				}).RunOnce())
			},
			child: &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "web"}},
		},
		"ExpandVolumes": {
			reason: "nothing has to be released",
			set: func(*serverEnv) *ChildSet[*Shop] {
				return Ensure(Build(func(shop *Shop) *appsv1.StatefulSet {
					claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{
						AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
						Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
					}}
					return &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: shop.Name}, Spec: appsv1.StatefulSetSpec{
						ServiceName: "web", Selector: &metav1.LabelSelector{MatchLabels: one.Labels}, Template: always,
						VolumeClaimTemplates: []corev1.PersistentVolumeClaim{claim},
					}}
				}).ExpandVolumes())
			},
			child: &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}},
		},
	}
	renamed := func(set *ChildSet[*Shop]) reconcile.NamedStep[*Shop] {
		return reconcile.Named("storage", set).FormerNames("files", "data")
	}
	for name, tc := range tests {
		for _, running := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/Running=%t", name, running), func(t *testing.T) {
				t.Log(tc.reason)
				env := newClusterEnv(t, ShopSpec{Shards: 1})
				in := func(obj client.Object) client.Object {
					if obj = obj.DeepCopyObject().(client.Object); obj.GetNamespace() == "other" {
						obj.SetNamespace(env.elsewhere)
					} else {
						obj.SetNamespace(env.Namespace)
					}
					return obj
				}
				env.Owner = env.newOwner()
				env.Create(t, env.Owner)
				env.setShards(t, 2)
				stop := env.startStep(t, reconcile.Named("data", tc.set(env)))
				waitFor(t, env, in(tc.child), exists)
				if tc.pruned != nil {
					waitFor(t, env, in(tc.pruned), exists)
				}
				stop()
				if running {
					env.setShards(t, 1)
					stop = env.startStep(t, renamed(tc.set(env)))
					waitFor(t, env, env.Owner, func(shop *Shop) bool { return slices.Equal(shop.Finalizers, []string{"children.opblocks.dev/storage"}) })
					waitFor(t, env, in(tc.child), func(obj client.Object) bool { return obj.GetAnnotations()[record.Set] == "storage" })
					if tc.pruned != nil {
						env.waitGone(t, in(tc.pruned))
					}
					require.NoError(t, env.Other.Delete(t.Context(), env.Owner))
				} else {
					require.NoError(t, env.Other.Delete(t.Context(), env.Owner))
					stop = env.startStep(t, renamed(tc.set(env)))
				}
				env.waitGone(t, env.Owner)
				if !tc.stays {
					env.waitGone(t, in(tc.child))
					return
				}
				stop()
				child := in(tc.child)
				waitFor(t, env, child, exists)
				require.Equal(t, "true", child.GetAnnotations()[record.Retained])
			})
		}
	}
}
