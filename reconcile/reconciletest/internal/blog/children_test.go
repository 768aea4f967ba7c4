package blog_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

const (
	hashAnnotation = "blogs.example.com/settings-hash"
	port           = 8080
)

func labelsOf(blog *Blog) map[string]string {
	return map[string]string{"app.kubernetes.io/name": "blog", "app.kubernetes.io/instance": blog.Name}
}

func metaOf(blog *Blog, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: blog.Namespace, Name: name, Labels: labelsOf(blog)}
}

// apply creates or updates a child. set changes the fields that the operator manages.
func (r *BlogReconciler) apply(ctx context.Context, blog *Blog, child client.Object, set func()) error {
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, child, func() error {
		labels := child.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		maps.Copy(labels, labelsOf(blog))
		child.SetLabels(labels)
		set()
		return controllerutil.SetControllerReference(blog, child, r.Scheme)
	})
	return err
}

// createIfMissing reads a child into the object. If the child does not exist, it creates it. It never updates the child.
func (r *BlogReconciler) createIfMissing(ctx context.Context, blog *Blog, child client.Object) error {
	err := r.Get(ctx, client.ObjectKeyFromObject(child), child)
	if apierrors.IsNotFound(err) {
		if err := controllerutil.SetControllerReference(blog, child, r.Scheme); err != nil {
			return err
		}
		return r.Create(ctx, child)
	}
	if err == nil && !metav1.IsControlledBy(child, blog) {
		return fmt.Errorf("%s belongs to somebody else", child.GetName())
	}
	return err
}

func (r *BlogReconciler) reconcileSecret(ctx context.Context, blog *Blog) error {
	return r.createIfMissing(ctx, blog, &corev1.Secret{
		ObjectMeta: metaOf(blog, blog.Name), Data: map[string][]byte{"password": []byte(rand.Text())},
	})
}

// reconcileConfigMap applies the ConfigMap with the settings, and returns the settings.
func (r *BlogReconciler) reconcileConfigMap(ctx context.Context, blog *Blog) (map[string]string, error) {
	settings := map[string]string{"title": blog.Spec.Title, "host": blog.Spec.Host}
	m := &corev1.ConfigMap{ObjectMeta: metaOf(blog, blog.Name)}
	return settings, r.apply(ctx, blog, m, func() { m.Data = settings })
}

// reconcileServices applies a Service for clients, and a headless one for the names of the pods.
func (r *BlogReconciler) reconcileServices(ctx context.Context, blog *Blog) error {
	ports := []corev1.ServicePort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromString("http")}}
	for _, name := range []string{blog.Name, blog.Name + "-pods"} {
		s := &corev1.Service{ObjectMeta: metaOf(blog, name)}
		err := r.apply(ctx, blog, s, func() {
			if name != blog.Name {
				s.Spec.ClusterIP = corev1.ClusterIPNone
			}
			s.Spec.Selector, s.Spec.Ports = labelsOf(blog), ports
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// reconcileBudget applies a PodDisruptionBudget if there is more than one pod. Otherwise it deletes the budget.
func (r *BlogReconciler) reconcileBudget(ctx context.Context, blog *Blog) error {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metaOf(blog, blog.Name)}
	if blog.Spec.Replicas > 1 {
		return r.apply(ctx, blog, b, func() {
			b.Spec.MaxUnavailable = new(intstr.FromInt32(1))
			b.Spec.Selector = &metav1.LabelSelector{MatchLabels: labelsOf(blog)}
		})
	}
	if err := r.Get(ctx, client.ObjectKeyFromObject(b), b); err != nil || !metav1.IsControlledBy(b, blog) {
		return client.IgnoreNotFound(err)
	}
	return client.IgnoreNotFound(r.Delete(ctx, b, client.Preconditions{UID: &b.UID}))
}

func (r *BlogReconciler) reconcileStatefulSet(ctx context.Context, blog *Blog, hash string) (*appsv1.StatefulSet, error) {
	set := &appsv1.StatefulSet{ObjectMeta: metaOf(blog, blog.Name)}
	return set, r.apply(ctx, blog, set, func() {
		if set.CreationTimestamp.IsZero() { // these fields are immutable, or have defaults
			set.Spec.ServiceName = blog.Name + "-pods"
			set.Spec.Selector = &metav1.LabelSelector{MatchLabels: labelsOf(blog)}
			set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{dataClaim()}
			set.Spec.Template.Spec.Containers = []corev1.Container{container(blog)}
		}
		set.Spec.Replicas = new(blog.Spec.Replicas)
		set.Spec.Template.Labels = labelsOf(blog)
		metav1.SetMetaDataAnnotation(&set.Spec.Template.ObjectMeta, hashAnnotation, hash)
		set.Spec.Template.Spec.Containers[0].Image = image(blog)
	})
}

func container(blog *Blog) corev1.Container {
	return corev1.Container{
		Name: "blog", Image: image(blog),
		Ports:   []corev1.ContainerPort{{Name: "http", ContainerPort: port}},
		EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: blog.Name}}}},
		Env: []corev1.EnvVar{{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: blog.Name}, Key: "password",
		}}}},
		VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
	}
}

func dataClaim() corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

// migrationJob returns the Job that migrates the data to the version in the spec.
func migrationJob(blog *Blog) *batchv1.Job {
	c := container(blog)
	c.Command, c.Ports, c.VolumeMounts = []string{"/blog", "migrate"}, nil, nil
	return &batchv1.Job{
		ObjectMeta: metaOf(blog, blog.Name+"-migrate-"+strings.ReplaceAll(blog.Spec.Version, ".", "-")),
		Spec: batchv1.JobSpec{
			BackoffLimit: new(int32(3)),
			Template: corev1.PodTemplateSpec{
				Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{c}},
			},
		},
	}
}

func image(blog *Blog) string { return "registry.example.com/blog:" + blog.Spec.Version }

// hashOf returns a hash of the settings. It is in the pod template, so the pods restart when the settings change.
func hashOf(settings map[string]string) string {
	h := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(h, "%q=%q\n", key, settings[key])
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}
