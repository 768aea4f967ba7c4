package memoryserver

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var namespaces = corev1.SchemeGroupVersion.WithKind("Namespace")

var namespaceKind = builtInKind{
	like: &corev1.Namespace{}, resource: "namespaces", cluster: true, status: true,
	behaviour: behaviour{
		validName: validation.NameIsDNSLabel,
		defaults: on(func(n *corev1.Namespace) {
			if n.Name != "" {
				labelByName(n)
			}
			unset(&n.Status.Phase, corev1.NamespaceActive)
		}),
		create: on(func(n *corev1.Namespace) {
			labelByName(n)
			n.Status.Phase = corev1.NamespaceActive
			if !slices.Contains(n.Spec.Finalizers, corev1.FinalizerKubernetes) {
				n.Spec.Finalizers = append(n.Spec.Finalizers, corev1.FinalizerKubernetes)
			}
		}),
		holds:  on(func(n *corev1.Namespace) { n.Status.Phase = corev1.NamespaceTerminating }),
		update: onBoth(func(made, live *corev1.Namespace) { made.Spec.Finalizers = live.Spec.Finalizers }),
	},
}

func labelByName(n *corev1.Namespace) {
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	n.Labels[corev1.LabelMetadataName] = n.Name
}

// createNamespaces is what a cluster has from the beginning.
func (s *Server) createNamespaces(names ...string) {
	k := s.kinds.find(namespaces)
	for _, name := range names {
		namespace := &corev1.Namespace{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{Name: name},
		}
		if _, err := s.create(k, "", namespace, writeOptions{manager: "kube-apiserver"}); err != nil {
			panic(err) // a name that is not valid
		}
	}
}

// admitCreate refuses objects in a namespace that does not exist or is being deleted.
func (s *Server) admitCreate(k *kind, key client.ObjectKey) error {
	if !k.namespaced {
		return nil
	}
	space := s.kinds.find(namespaces)
	found := s.table(space).find(client.ObjectKey{Name: key.Namespace})
	if found == nil {
		return apierrors.NewNotFound(space.groupResource(), key.Namespace)
	}
	if found.object.GetDeletionTimestamp() == nil {
		return nil
	}
	err := apierrors.NewForbidden(k.groupResource(), key.Name,
		fmt.Errorf("unable to create new content in namespace %s because it is being terminated", key.Namespace))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: corev1.NamespaceTerminatingCause, Field: "metadata.namespace",
		Message: fmt.Sprintf("namespace %s is being terminated", key.Namespace),
	})
	return err
}

// finishNamespaces empties namespaces that are being deleted, and ends those that are empty.
func (s *Server) finishNamespaces() {
	space := s.kinds.find(namespaces)
	for _, r := range s.table(space).order {
		v := r.latest()
		if v == nil || v.object.GetDeletionTimestamp() == nil {
			continue
		}
		empty := true
		for _, i := range s.all() {
			if i.key.Namespace != r.key.Name {
				continue
			}
			s.must(s.delete(i.kind, i.key, &metav1.DeleteOptions{}))
			empty = empty && s.table(i.kind).find(i.key) == nil
		}
		if empty && len(v.object.GetFinalizers()) == 0 {
			s.remove(space, r.key)
		}
	}
}
