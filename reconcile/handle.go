package reconcile

import (
	"context"
	"errors"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/passcontext"
)

// handle gives functions access to the pass through the context. A function that may never return gets its own handle: see [handle.Detach].
// After the function was given up, that handle does nothing.
type handle struct {
	mu   *sync.Mutex // nil for the handle of the pass itself, which is never detached
	pass *pass       // nil after the function was given up
}

var _ passcontext.Pass = &handle{}

var errDetached = errors.New("the pass has ended before the function returned")

// handleFrom returns the handle that the context carries, or nil outside of a pass.
func handleFrom(ctx context.Context) *handle {
	h, _ := passcontext.FromContext(ctx).(*handle)
	return h
}

// use calls do with the pass, and reports whether it did. It does not call do outside of a pass, or after the
// function was given up.
func (h *handle) use(do func(p *pass)) bool {
	if h == nil {
		return false
	}
	if h.mu != nil {
		h.mu.Lock()
		defer h.mu.Unlock()
	}
	if h.pass == nil {
		return false
	}
	do(h.pass)
	return true
}

// send is like use, for functions that send requests with a context. The context that do gets has the pass's own handle, which has no
// lock. Otherwise a client that uses the pass would wait for the lock for ever.
func (h *handle) send(ctx context.Context, do func(ctx context.Context, p *pass) error) (err error) {
	used := h.use(func(p *pass) {
		if h.mu != nil {
			ctx = passcontext.NewContext(ctx, &p.handle)
		}
		err = do(ctx, p)
	})
	if !used {
		return errDetached
	}
	return err
}

// Detach implements [passcontext.Pass].
func (h *handle) Detach(ctx context.Context) (ofFunction context.Context, end func()) {
	if h.mu != nil {
		return passcontext.NewContext(ctx, h), h.end
	}
	p, own := h.pass, &handle{mu: &sync.Mutex{}, pass: h.pass}
	return passcontext.NewContext(ctx, own), func() {
		own.end()
		p.object.obj = p.engine.copyOf(p.object.before)
		p.object.obj.GetObjectKind().SetGroupVersionKind(p.engine.kind)
	}
}

// end takes the pass from the handle. If a call uses the pass at this moment, end waits for that call.
func (h *handle) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pass = nil
}

// ConfirmCurrent implements [passcontext.Pass]. It is like [Checkpoint], but it writes nothing into the status. Packages
// call it before they do something in the cluster that cannot be undone.
func (h *handle) ConfirmCurrent(ctx context.Context, obj client.Object) (known bool, err error) {
	known = true
	err = h.send(ctx, func(ctx context.Context, p *pass) error {
		if known = p.object.owns(obj); !known {
			return nil
		}
		return p.object.confirm(ctx)
	})
	return known, err
}

// Rebase implements [passcontext.Pass].
func (h *handle) Rebase(obj client.Object) {
	h.use(func(p *pass) {
		if p.object.owns(obj) {
			p.object.rebase()
		}
	})
}

// AsCached implements [passcontext.Pass].
func (h *handle) AsCached(obj client.Object) (is bool) {
	h.use(func(p *pass) {
		is = p.object.cached != "" && p.object.owns(obj) && obj.GetResourceVersion() == p.object.cached && p.running <= p.engine.settlers
	})
	return is
}

// Spend implements [passcontext.Pass].
func (h *handle) Spend(by passcontext.Spender) (err error) {
	if !h.use(func(p *pass) { err = p.turn.Spend(p.engine.clock.Now(), p.engine.turns, p.running, by) }) {
		return errDetached
	}
	return err
}

// AfterSteps implements [passcontext.Pass].
func (h *handle) AfterSteps(do func(ctx context.Context) error) {
	h.use(func(p *pass) { p.atEnd = append(p.atEnd, atEnd{p.running, do}) })
}

// KeepAnnotation implements [passcontext.Pass].
func (h *handle) KeepAnnotation(key, step string) {
	h.use(func(p *pass) {
		if p.kept == nil {
			p.kept = map[string]string{}
		}
		p.kept[key] = step
	})
}

// AnnotationKeptBy implements [passcontext.Pass].
func (h *handle) AnnotationKeptBy(key string) (step string, kept bool) {
	h.use(func(p *pass) { step, kept = p.kept[key] })
	return step, kept
}

// SetCondition implements [passcontext.Pass].
func (h *handle) SetCondition(condition metav1.Condition) {
	h.use(func(p *pass) { p.notes = append(p.notes, note{p.engine.passSteps[p.running].stepOptions, condition}) })
}

// OtherBuilderOf implements [passcontext.Pass].
func (h *handle) OtherBuilderOf(ctx context.Context, kind schema.GroupKind, name types.NamespacedName) (running, other string) {
	h.use(func(p *pass) {
		running, other = p.engine.passSteps[p.running].name, p.engine.builders.OtherThan(ctx, p.running, p.object.obj, kind, name)
	})
	return running, other
}
