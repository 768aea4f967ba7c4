package ownedresources

import (
	"context"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// controllerIndex finds an owner's children in the cache, together with those of some other owners: see
// [controllerBucket].
const controllerIndex = "opblocks.dev/controller"

// indexByController adds the index, unless another set did: there is one per kind and manager.
func indexByController(ctx context.Context, mgr ctrl.Manager, child client.Object) error {
	err := mgr.GetFieldIndexer().IndexField(ctx, child, controllerIndex, func(obj client.Object) []string {
		if ref := metav1.GetControllerOfNoCopy(obj); ref != nil {
			return []string{controllerBucket(ref.UID)}
		}
		return nil
	})
	if err != nil && !strings.Contains(err.Error(), "indexer conflict") { // client-go has no type for it
		return fmt.Errorf("index of %T by controller: %w", child, err)
	}
	return nil
}

// controllerBucket is one of 1,024 values. For each value an index holds two maps, which would take nearly a kilobyte for
// each owner's children; to skip some dozens of others', once after a start, costs less.
func controllerBucket(owner types.UID) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(owner))
	return strconv.Itoa(int(h.Sum32() % 1024))
}
