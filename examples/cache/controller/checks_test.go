//go:build !race

package controller_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storev1alpha1 "github.com/opblocks/opblocks/examples/cache/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/cache/registry/registrytest"
	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// check is called after an action.
type check = func(env *reconciletest.Env) error

// named is the metadata of an object whose name begins with the name of the sample.
func named(suffix string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "default", Name: "cache-sample" + suffix}
}

const address = "cache-sample-0.cache-sample.default.svc"

var matching = map[string]string{"app.kubernetes.io/name": "cache", "app.kubernetes.io/instance": "cache-sample"}

// serves returns a check that a number of pods is ready, that the status says so, and that the registry has the address.
func serves(replicas int32) check {
	c := sample(func(s *cacheSpec) { s.Replicas = &replicas })
	c.Status = storev1alpha1.CacheStatus{
		ReadyReplicas: replicas, PasswordSecret: "cache-sample-password", RegisteredAddress: address + ":6379",
		Selector:   "app.kubernetes.io/instance=cache-sample,app.kubernetes.io/name=cache",
		Conditions: []metav1.Condition{{Type: "Registered", Status: metav1.ConditionTrue}, {Type: "Monitored", Status: metav1.ConditionTrue}},
	}
	set := &appsv1.StatefulSet{ObjectMeta: named(""), Spec: appsv1.StatefulSetSpec{Replicas: &replicas}}
	set.Status.Replicas, set.Status.AvailableReplicas = replicas, replicas
	isSo, ready := reconciletest.Has(c, set), reconciletest.Ready(c, set)
	entries := registered(map[string]string{"default/cache-sample": address + ":6379"})
	return func(env *reconciletest.Env) error { return errors.Join(isSo(env), ready(env), entries(env)) }
}

func registered(want map[string]string) check {
	return func(env *reconciletest.Env) error {
		if now := env.External.(*registrytest.Registry).Entries(); !maps.Equal(now, want) {
			return fmt.Errorf("the registry has %v, and must have %v", now, want)
		}
		return nil
	}
}

// template returns the StatefulSet with a part of its pods' spec.
func template(pod corev1.PodSpec) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{ObjectMeta: named(""), Spec: appsv1.StatefulSetSpec{Template: corev1.PodTemplateSpec{Spec: pod}}}
}

func passwordFrom(variable string) corev1.EnvVar {
	return corev1.EnvVar{Name: variable, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: "cache-sample-password"}, Key: "password",
	}}}
}

// server returns a check of the StatefulSet.
func server(image, storage string) check {
	probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("redis")}}}
	set := template(corev1.PodSpec{
		SecurityContext:              &corev1.PodSecurityContext{RunAsUser: new(int64(999)), FSGroup: new(int64(999))},
		AutomountServiceAccountToken: new(false),
		Containers: []corev1.Container{
			{
				Name: "redis", Image: image, ReadinessProbe: probe, LivenessProbe: probe,
				Env:          []corev1.EnvVar{passwordFrom("PASSWORD"), {Name: "NAME", Value: "cache-sample"}, {Name: "PRIMARY", Value: address}},
				Ports:        []corev1.ContainerPort{{Name: "redis", ContainerPort: 6379}},
				VolumeMounts: []corev1.VolumeMount{{Name: "cache-data", MountPath: "/data"}, {Name: "settings", MountPath: "/etc/cache", ReadOnly: true}},
			},
			{Name: "exporter", Env: []corev1.EnvVar{passwordFrom("REDIS_PASSWORD")}, Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: 9121}}},
		},
		Volumes: []corev1.Volume{{Name: "settings", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "cache-sample-settings"},
		}}}},
	})
	set.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenDeleted: "Delete", WhenScaled: "Retain"}
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "cache-data"}, Spec: claim("", storage).Spec}}
	return reconciletest.Has(set)
}

// otherChildren returns what is beside the StatefulSet.
func otherChildren() []client.Object {
	monitor := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitor",
		"metadata": map[string]any{"namespace": "default", "name": "cache-sample", "labels": map[string]any{"app.kubernetes.io/instance": "cache-sample"}},
		"spec": map[string]any{
			"selector":  map[string]any{"matchLabels": map[string]any{"app.kubernetes.io/instance": "cache-sample"}},
			"endpoints": []any{map[string]any{"port": "metrics"}},
		},
	}}
	return []client.Object{
		monitor,
		&corev1.Service{ObjectMeta: named(""), Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: matching, Ports: []corev1.ServicePort{
			{Name: "redis", Port: 6379, TargetPort: intstr.FromString("redis")}, {Name: "metrics", Port: 9121, TargetPort: intstr.FromString("metrics")},
		}}},
		&policyv1.PodDisruptionBudget{ObjectMeta: named(""), Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: matching},
		}},
		&networkingv1.NetworkPolicy{ObjectMeta: named(""), Spec: networkingv1.NetworkPolicySpec{PodSelector: metav1.LabelSelector{MatchLabels: matching}}},
	}
}

func claim(suffix, size string) *corev1.PersistentVolumeClaim {
	storage := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	return &corev1.PersistentVolumeClaim{ObjectMeta: named(suffix), Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Resources: corev1.VolumeResourceRequirements{Requests: storage},
	}}
}

// volumes returns a check of the volumes of the pods.
func volumes(sizes ...string) check {
	var all []client.Object
	for i, size := range sizes {
		c := claim("", size)
		c.Name, c.Status.Capacity = fmt.Sprint("cache-data-cache-sample-", i), c.Spec.Resources.Requests
		all = append(all, c)
	}
	return reconciletest.Has(all...)
}

// priority returns a check that the pods have a PriorityClass of this value.
func priority(value int32) check {
	set := template(corev1.PodSpec{PriorityClassName: "default.cache-sample"})
	set.Spec.Template.Annotations = map[string]string{"store.example.com/priority": fmt.Sprint(value)}
	return reconciletest.Has(set, &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: "default.cache-sample"}, Value: value, Description: "Priority of the pods of Cache default/cache-sample",
	})
}

// only returns a check that a list has these names.
func only(list client.ObjectList, want ...string) check {
	return func(env *reconciletest.Env) error {
		var names []string
		if err := env.List(context.Background(), list, client.InNamespace("default")); err != nil {
			return err
		}
		err := apimeta.EachListItem(list, func(item runtime.Object) error {
			names = append(names, item.(client.Object).GetName())
			return nil
		})
		if slices.Sort(names); !slices.Equal(names, want) {
			err = errors.Join(err, fmt.Errorf("%T has %v, and must have %v", list, names, want))
		}
		return err
	}
}

// waits returns a check that a condition is False, for a reason.
func waits(condition, reason string) check {
	c := sample()
	c.Status.Conditions = []metav1.Condition{{Type: condition, Status: metav1.ConditionFalse, Reason: reason}}
	return reconciletest.Has(c)
}

// settings returns a check that the servers' file has these lines, and that the pods have been started with it.
func settings(lines ...string) check {
	return func(env *reconciletest.Env) error {
		all := map[string]string{}
		for _, line := range lines {
			key, value, _ := strings.Cut(line, " ")
			all[key] = value
		}
		set, pod := template(corev1.PodSpec{}), &corev1.Pod{ObjectMeta: named("-0")}
		if _, err := ownedresources.SetHash(&set.Spec.Template, "store.example.com/settings", all); err != nil {
			return err
		}
		pod.Annotations = set.Spec.Template.Annotations
		m := &corev1.ConfigMap{ObjectMeta: named("-settings"), Data: map[string]string{"redis.conf": strings.Join(lines, "\n") + "\n"}}
		return reconciletest.Has(m, set, pod)(env)
	}
}

// rememberPassword is an action that copies the password.
var rememberPassword = reconciletest.Do("copy the password", func(ctx context.Context, c client.Client) error {
	s := &corev1.Secret{ObjectMeta: named("-password")}
	if err := c.Get(ctx, client.ObjectKeyFromObject(s), s); err != nil {
		return err
	}
	return c.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "former"}, Data: s.Data})
})

// password returns a check of the generated values, and of their hash on the pods. It returns an error if the password is the former one.
func password(env *reconciletest.Env) error {
	s, former := &corev1.Secret{ObjectMeta: named("-password")}, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "former"}}
	if err := env.Get(context.Background(), client.ObjectKeyFromObject(s), s); err != nil {
		return err
	}
	value, salt := s.Data["password"], s.Data["salt"]
	_ = env.Get(context.Background(), client.ObjectKeyFromObject(former), former) // it may not exist
	if len(value) != 32 || len(salt) != 32 || bytes.Equal(value, salt) || bytes.Equal(value, former.Data["password"]) {
		return fmt.Errorf("the password has %d bytes, the salt %d, or they are the same, or not new", len(value), len(salt))
	}
	hash := hmac.New(sha256.New, salt)
	hash.Write(value)
	pod := &corev1.Pod{ObjectMeta: named("-0")}
	pod.Annotations = map[string]string{"store.example.com/password": hex.EncodeToString(hash.Sum(nil)[:16])}
	return reconciletest.Has(pod)(env)
}

// copies returns an error unless the latest Job has copied the data, and the status says so.
func copies(env *reconciletest.Env) error {
	var all batchv1.JobList
	if err := env.List(context.Background(), &all); err != nil || len(all.Items) == 0 {
		return fmt.Errorf("there is no Job: %w", err)
	}
	c := sample()
	if err := env.Get(context.Background(), client.ObjectKeyFromObject(c), c); err != nil {
		return err
	}
	if c.Status.Backup.LastSuccessfulTime == nil {
		return errors.New("no backup has succeeded")
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: c.Status.Backup.LastJobName}}
	job.Spec.Template.Spec = corev1.PodSpec{
		SecurityContext:              &corev1.PodSecurityContext{RunAsUser: new(int64(999)), FSGroup: new(int64(999))},
		AutomountServiceAccountToken: new(false),
		Containers: []corev1.Container{{
			Name: "backup", Image: "redis:7.4-alpine", Command: []string{"redis-cli", "-h", address, "--rdb", "/backups/2000-01-01T01-00.rdb"},
			Env: []corev1.EnvVar{passwordFrom("REDISCLI_AUTH")}, VolumeMounts: []corev1.VolumeMount{{Name: "backups", MountPath: "/backups"}},
		}},
		Volumes: []corev1.Volume{{Name: "backups", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
			ClaimName: "cache-sample-backups",
		}}}},
	}
	return reconciletest.Has(job)(env)
}
