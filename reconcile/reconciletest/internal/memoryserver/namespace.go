package memoryserver

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver/kind"
)

var namespaces = corev1.SchemeGroupVersion.WithKind("Namespace")

// createNamespaces creates the namespaces that every cluster has.
func (s *Server) createNamespaces(names ...string) {
	k := s.kinds.find(namespaces)
	for _, name := range names {
		namespace := &corev1.Namespace{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{Name: name},
		}
		if _, err := s.create(k, "", namespace, writeOptions{manager: "kube-apiserver"}); err != nil {
			panic(err) // cannot happen: the names are valid
		}
	}
}

// admitCreate returns an error if the namespace of the object does not exist or is being deleted.
func (s *Server) admitCreate(k *kind.Kind, key client.ObjectKey) error {
	if !k.Namespaced {
		return nil
	}
	space := s.kinds.find(namespaces)
	found := s.store.find(space, client.ObjectKey{Name: key.Namespace})
	if found == nil {
		return apierrors.NewNotFound(space.GroupResource(), key.Namespace)
	}
	if found.object.GetDeletionTimestamp() == nil {
		return nil
	}
	err := apierrors.NewForbidden(k.GroupResource(), key.Name,
		fmt.Errorf("unable to create new content in namespace %s because it is being terminated", key.Namespace))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: corev1.NamespaceTerminatingCause, Field: "metadata.namespace",
		Message: fmt.Sprintf("namespace %s is being terminated", key.Namespace),
	})
	return err
}

// finishNamespaces deletes the objects in namespaces that are being deleted, and removes the namespaces that are empty.
func (c *collector) finishNamespaces() {
	space := c.server.kinds.find(namespaces)
	for _, r := range c.store.table(space).order {
		v := r.latest()
		if v == nil || v.object.GetDeletionTimestamp() == nil {
			continue
		}
		empty := true
		for _, i := range c.store.objects() {
			if i.key.Namespace != r.key.Name {
				continue
			}
			must(c.server.delete(i.kind, i.key, &metav1.DeleteOptions{}))
			empty = empty && c.store.find(i.kind, i.key) == nil
		}
		if empty && len(v.object.GetFinalizers()) == 0 {
			c.store.remove(space, r.key)
		}
	}
}
