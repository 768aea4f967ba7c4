package ownedresources

import (
	"context"
	"reflect"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// blocked remembers which owners wait for a name that an object of somebody else has. That
// object's owner reference leads elsewhere, so its deletion would tell them nothing.
type blocked struct {
	count  atomic.Int64
	mu     sync.Mutex
	owners map[blockedName]types.NamespacedName
}

type blockedName struct {
	kind reflect.Type
	name types.NamespacedName
}

func newBlocked() *blocked { return &blocked{owners: map[blockedName]types.NamespacedName{}} }

func (b *blocked) set(child client.Object, owner types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.owners[blockedName{reflect.TypeOf(child), client.ObjectKeyFromObject(child)}] = owner
	b.count.Store(int64(len(b.owners)))
}

// take gives the owner that waits for this object's name, and forgets it: its pass will tell.
func (b *blocked) take(child client.Object) (owner types.NamespacedName, ok bool) {
	if b.count.Load() == 0 {
		return owner, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	is := blockedName{reflect.TypeOf(child), client.ObjectKeyFromObject(child)}
	owner, ok = b.owners[is]
	delete(b.owners, is)
	b.count.Store(int64(len(b.owners)))
	return owner, ok
}

// handler brings the pass of an owner when the object in its way goes, or gets another owner.
func (b *blocked) handler() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]
	enqueue := func(child client.Object, q queue) {
		if owner, ok := b.take(child); ok {
			q.Add(ctrl.Request{NamespacedName: owner})
		}
	}
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			if !reflect.DeepEqual(metav1.GetControllerOfNoCopy(e.ObjectOld), metav1.GetControllerOfNoCopy(e.ObjectNew)) {
				enqueue(e.ObjectNew, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { enqueue(e.Object, q) },
	}
}
