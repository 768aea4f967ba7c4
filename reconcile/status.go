package reconcile

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/opblocks/opblocks/conditions"
	"github.com/opblocks/opblocks/internal/step"
	"github.com/opblocks/opblocks/internal/writeloop"
)

// saveStatus writes the status if it differs from the status that was read. If observed is false, the observed generation does not
// change. If another writer undoes our write again and again, saveStatus delays the write. It logs an error, and sets p.retry. If
// the kind has no status subresource, the pass returns the error instead.
func (p *pass) saveStatus(ctx context.Context, observed bool) {
	p.engine.status.Complete(p.object.before, p.object.obj, observed)
	if p.engine.status.Equal(p.object.before, p.object.obj) {
		if !p.engine.metrics.hasConditions(p.object.name) {
			p.engine.metrics.setConditions(p.object.name, p.engine.measured(p.object.before))
		}
		return
	}
	if p.object.fresh == outdated { // a write would return the same conflict
		p.statusNotWritten(nil)
		return
	}
	was, is := p.engine.readyOf(p.object.before), p.engine.readyOf(p.object.obj)
	data, err := p.engine.status.Patch(p.object.before, p.object.obj, p.object.fresh == uncertain)
	sum, fields := statusSum(data)
	if wait := p.slowDownStatus(ctx, sum, fields); wait > 0 {
		p.retry = p.retry.merge(retry{after: wait})
		return
	}
	if err == nil {
		err = p.object.sendStatus(ctx, data)
	}
	switch {
	case err == nil:
		p.engine.memory.countStatus(p.object.name, sum, p.engine.clock.Now(), p.engine.metrics.loopsOrNil())
		if is.Status == metav1.ConditionTrue && was.Status != metav1.ConditionTrue {
			p.event(corev1.EventTypeNormal, conditions.Ready, "Reconcile", cmp.Or(is.Message, "Everything is as wanted"))
		}
		p.engine.metrics.setConditions(p.object.name, p.engine.measured(p.object.before))
	case errors.Is(ctx.Err(), context.Canceled): // the operator stops
	case isGone(err):
		p.engine.forget(p.object.name)
	case isConflict(err):
		p.statusNotWritten(err)
		log.FromContext(ctx).V(1).Info("Status was written by somebody else meanwhile; trying again", "conflict", err.Error())
	case errors.Is(err, errNoSubresource): // this error would appear in no condition and, in most tests, in no log
		p.statusNotWritten(err)
		p.mistake = fmt.Errorf("status of %s %s: %w", p.engine.kind.Kind, p.object.name, err)
	default:
		p.statusNotWritten(err)
		p.worst = max(p.worst, failed)
		log.FromContext(ctx).Error(err, "Cannot write the status")
	}
}

// statusNotWritten requests another pass, and tells the steps that their changes of the status are lost.
func (p *pass) statusNotWritten(err error) {
	p.retry = p.retry.merge(retryFailure(err))
	for i := range p.engine.passSteps {
		if s, ok := p.engine.passSteps[i].self.(step.Repeating); ok {
			s.StatusNotWritten(p.object.name)
		}
	}
}

// Checkpoint makes it safe to change something outside of the cluster. Call it in Reconcile or Finalize of a step, with the
// context of the step, right before the action.
//
// It writes the changes that the steps have made to the status so far, so that after a crash the next pass knows about the
// action. It also makes sure that the step does not work on an outdated object. The cache of a process that has just started
// may show an old version of an object, which was changed or deleted since.
//
// If the status has changed, Checkpoint sends one status patch with the resource version. Otherwise it reads the object from
// the API server, but only once for each object in the life of the process, because the cache only becomes newer. If this
// pass has already written the metadata of the object, Checkpoint does not read the object, because such a write carries the
// resource version too.
//
// If Checkpoint returns an error, change nothing, and return the error from the step. If the object was changed or deleted
// since it was read, the error is a conflict (apierrors.IsConflict), and the pass is repeated. It is also an error to call
// Checkpoint outside of a step, or for a kind whose status is not written, such as with [Reconciler.WithoutStatus].
func Checkpoint(ctx context.Context) error {
	h := handleFrom(ctx)
	if h == nil {
		return errors.New("checkpoint outside of a pass: call it in a step, with the context that the step was given")
	}
	return h.send(ctx, func(ctx context.Context, p *pass) error { return p.object.checkpoint(ctx) })
}

func (o *passObject) checkpoint(ctx context.Context) error {
	if err := o.engine.status.Recordable(); err != nil {
		return err
	}
	o.engine.status.FillRequired(o.obj)
	if o.engine.status.Equal(o.before, o.obj) {
		return o.confirm(ctx)
	}
	err := o.writeStatus(ctx, true)
	o.fresh = o.fresh.after(err)
	if err == nil {
		o.engine.memory.setCurrent(o.name, o.before.GetUID())
	}
	return err
}

// writeStatus sends the changes of the status at once. Afterwards before has the answer of the API server.
func (o *passObject) writeStatus(ctx context.Context, locked bool) error {
	data, err := o.engine.status.Patch(o.before, o.obj, locked)
	if err != nil {
		return err
	}
	return o.sendStatus(ctx, data)
}

// sendStatus sends a patch of the status.
func (o *passObject) sendStatus(ctx context.Context, data []byte) error {
	answer := o.engine.empty()
	answer.SetNamespace(o.name.Namespace)
	answer.SetName(o.name.Name)
	switch err := o.engine.client.Status().Patch(ctx, answer, client.RawPatch(types.MergePatchType, data), o.engine.fieldOwner); {
	case apierrors.IsNotFound(err):
		return o.explainNotFound(ctx, err)
	case err != nil:
		return err
	}
	o.engine.writes.Record(answer)
	o.before = answer
	o.obj.SetResourceVersion(answer.GetResourceVersion())
	return nil
}

var errNoSubresource = errors.New("the kind has no status subresource: add the marker +kubebuilder:subresource:status to its type, in a test WithStatusSubresource to the fake client")

// explainNotFound returns why the API server has answered a status write with NotFound: the object was deleted, which the
// cache may not show yet, or its kind has no status subresource.
func (o *passObject) explainNotFound(ctx context.Context, answer error) error {
	switch _, err := o.readLive(ctx); {
	case apierrors.IsNotFound(err):
		return goneError{o.conflict()}
	case err != nil:
		return errors.Join(answer, err)
	}
	return fmt.Errorf("%w: %w", errNoSubresource, answer)
}

// goneError is the conflict that is returned if the object of the pass was deleted.
type goneError struct{ error }

func (e goneError) Unwrap() error { return e.error }

func isGone(err error) bool {
	_, gone := errors.AsType[goneError](err)
	return gone
}

// Another writer may change a status back after each write: another version of the operator that runs at the same time, or another
// controller. The pass would then send the same patch again and again, so it delays the patch. A status that changes often for
// another reason has a different patch each time.

// statusSum returns a hash of the fields that a patch of the status sets, and the names of the fields. The hash is never 0. It
// does not depend on the transition times, which are new each time that a condition is changed.
func statusSum(patch []byte) (sum uint64, fields []string) {
	var sent struct {
		Status map[string]any `json:"status"`
	}
	if json.Unmarshal(patch, &sent) != nil {
		return 1, nil
	}
	for field := range sent.Status {
		fields = append(fields, "status."+field)
	}
	slices.Sort(fields)
	h := fnv.New64a()
	_ = json.NewEncoder(h).Encode(withoutTransitions(sent.Status)) // neither returns an error: the value was decoded from JSON, and h is a hash
	return h.Sum64() | 1, fields
}

func withoutTransitions(v any) any {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "lastTransitionTime")
		for key := range v {
			v[key] = withoutTransitions(v[key])
		}
	case []any:
		for i := range v {
			v[i] = withoutTransitions(v[i])
		}
	}
	return v
}

// slowDownStatus returns how long a write of the status has to wait. It returns 0 if the write may be sent now.
func (p *pass) slowDownStatus(ctx context.Context, sum uint64, fields []string) time.Duration {
	path := strings.Join(fields, ", ")
	wait, begins := p.engine.memory.delayStatus(p.object.name, sum, p.engine.clock.Now(), func(l *writeloop.Loop, now time.Time) (time.Duration, bool) {
		return l.Wait(now, p.engine.metrics.loopsOrNil(), p.engine.kind.Kind, p.object.name.Namespace, p.object.name.Name, path)
	})
	if begins {
		message := "the status is changed back again and again by another writer, so it is written less often: " + path
		log.FromContext(ctx).Info(message)
		p.event(corev1.EventTypeWarning, writeloop.Reason, "Reconcile", message)
	}
	return wait
}
