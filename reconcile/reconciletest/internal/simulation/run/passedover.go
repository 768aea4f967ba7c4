package run

import (
	"context"
	"syscall"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/plan"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/trace"
)

// Update updates the object. A fault may make the webhooks unreachable for this write, so that they are skipped.
func (u *userClient) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	defer u.reachWebhook("update", obj)()
	return u.WithWatch.Update(ctx, obj, opts...)
}

// Patch patches the object. A fault may make the webhooks unreachable for this write, so that they are skipped.
func (u *userClient) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	defer u.reachWebhook("patch", obj)()
	return u.WithWatch.Patch(ctx, obj, patch, opts...)
}

// reachWebhook is called before the user writes an object. If a fault is planned here, no webhook can be reached until the caller calls
// end, after the write.
func (u *userClient) reachWebhook(verb string, obj client.Object) (end func()) {
	end = func() {}
	server := u.world.Server
	gvk, err := apiutil.GVKForObject(obj, u.world.Scheme)
	if err != nil || !server.Reviews(gvk, "", true) {
		return end
	}
	id := request.ObjectID{Kind: gvk, Name: client.ObjectKeyFromObject(obj)}
	u.withLock(func() {
		fault, at := u.world.Plan.Reach(plan.Point{Name: "the user's " + verb + " of " + id.String(), UserWrite: true})
		if fault != kinds.WebhookPassedOver {
			return
		}
		server.WatchWebhooks(syscall.ECONNREFUSED)
		u.world.PassOver(request.ObjectID{Kind: server.Canonical(gvk), Name: id.Name})
		u.world.Plan.NoteInjected(fault, at)
		note := trace.Row{What: "  the webhooks of the user's " + verb + " of " + id.String(), Fault: fault, Answer: "they cannot be reached"}
		if u.locked {
			u.world.Trace.AddBefore(note)
		} else {
			u.world.Trace.Add(note)
		}
		end = func() { server.WebhookCalled() }
	})
	return end
}
