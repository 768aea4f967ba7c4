package apply

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/forecast"
	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/feature"
	"github.com/opblocks/opblocks/internal/owned/plan"
	"github.com/opblocks/opblocks/internal/owned/write"
	"github.com/opblocks/opblocks/internal/ownwrites"
	"github.com/opblocks/opblocks/reconcile/preview"
)

// Previews returns what an Applier would do, and writes nothing. The owner's client must refuse all writes but dry runs. As an Applier
// does, Previews uses the answers to writes that the cache does not show yet. It uses nothing else that the Applier remembers.
type Previews struct {
	Cache  Cache
	Writes *ownwrites.Writes
}

// Previews returns the [Previews] of this Applier.
func (a *Applier) Previews() Previews { return Previews{Cache: a.Cache, Writes: a.Writes} }

// Previewed is the result of a preview of one object.
type Previewed struct {
	preview.Change
	// Live is the object as it would be after the change: the answer to a dry run. If nothing changes, or if the answer is not known, Live is
	// the live object. If the object does not exist either, Live is nil.
	Live client.Object
}

// Preview returns what a reconcile would do to one object, and writes nothing. An object that the cache shows as desired costs no request.
// Any other object costs at most three requests: a read from the API server and two dry runs. If the API server refuses the change, Preview
// looks for a way around the refusal, as an apply does. That costs one more read and a few more dry runs.
//
// Preview decides by the same rules as an update. It assumes that the owner is current, that no write is delayed, and that the children for
// which the object waits are ready: only time or other writers decide these.
func (a Previews) Preview(ctx context.Context, o *owned.Owner, child owned.Declared) (Previewed, error) {
	if child.Options.RunOnce {
		return a.previewRun(ctx, o, &child)
	}
	d, err := desireDeclared(o, child)
	if err != nil {
		return Previewed{}, err
	}
	cached, _, err := read(ctx, a.Writes, o, d.Kind, d.Object)
	switch {
	case err != nil:
		return Previewed{}, err
	case cached == nil:
		p, err := a.previewCreation(ctx, d)
		if apierrors.IsAlreadyExists(err) {
			return a.previewLive(ctx, d)
		}
		return p, err
	}
	if p, err := a.foresee(ctx, d, cached); err == nil && p.Verb == plan.DoNothing {
		return unchanged(d, cached), nil
	}
	return a.previewLive(ctx, d)
}

// desireDeclared normalizes a declared object, so that it can be compared and sent. It also sets the fields that come from the object's
// child: Binding, Builder, Order and Reads.
func desireDeclared(o *owned.Owner, child owned.Declared) (*owned.Desired, error) {
	d, err := desire(o, child.Kind, child.Object, child.Options)
	if err != nil {
		return nil, err
	}
	d.Binding, d.Builder, d.Order, d.Reads = child.Binding, child.Builder, child.Order, child.Reads
	return d, nil
}

// previewLive does the same as Preview for an object that exists. It reads the object from the API server. If another writer changes the
// object in between, previewLive tries once more.
func (a Previews) previewLive(ctx context.Context, d *owned.Desired) (Previewed, error) {
	p, err := a.previewVersion(ctx, d)
	if apierrors.IsConflict(err) { // another writer was faster
		p, err = a.previewVersion(ctx, d)
	}
	return p, err
}

// previewVersion does the same as Preview for the version of the object that the API server has now.
func (a Previews) previewVersion(ctx context.Context, d *owned.Desired) (Previewed, error) {
	live, err := d.ReadLive(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return a.previewCreation(ctx, d)
	case err != nil:
		return Previewed{}, fmt.Errorf("read %s: %w", d, err)
	}
	p, err := a.foresee(ctx, d, live)
	if err != nil {
		return Previewed{}, err
	}
	//exhaustive:enforce
	switch p.Verb {
	case plan.DoNothing:
		return unchanged(d, live), nil
	case plan.DoReturn:
		return Previewed{Live: live}, p.Err
	case plan.DoTakeBack:
		return previewTakeBack(d, live), nil
	case plan.DoCollect, plan.DoRemove:
		return a.previewRecreation(ctx, d, live, "it is left by a former owner of this name")
	case plan.DoRefuse:
		return a.previewRefused(ctx, d, live, fmt.Errorf("apply %s: %w", d, p.Err))
	case plan.DoExpand:
		if previewed, accepted, err := a.previewExpansion(ctx, d, live); accepted || err != nil {
			return previewed, err
		}
	case plan.DoApply, plan.DoBind:
	}
	return a.previewApply(ctx, d, live, p)
}

// foresee returns the plan for a live object: what an update would do next. It does not execute the plan.
func (a Previews) foresee(ctx context.Context, d *owned.Desired, live client.Object) (plan.Plan, error) {
	s := &plan.State{Desired: d, Live: live, Known: map[plan.Fact]bool{plan.OwnerIsAlive: true}}
	for range maxSteps {
		p := plan.Decide(plan.Stages, s)
		need, missing := s.Missing(p)
		if !missing {
			return p, nil
		}
		if need == plan.PaceOfWrites {
			s.Paced, s.Known[need] = p.Paths, true
			continue
		}
		if err := ask(ctx, s, need, p); err != nil {
			return plan.Plan{}, err
		}
	}
	return plan.Plan{}, fmt.Errorf("%s changes while it is planned", d)
}

func unchanged(d *owned.Desired, live client.Object) Previewed {
	return Previewed{Change: changeOf(d, forecast.None), Live: live}
}

func changeOf(d *owned.Desired, action string) preview.Change {
	return preview.Change{Kind: d.Kind.GVK.GroupKind(), Name: d.Key(), Action: action}
}

// previewCreation previews an object that does not exist, by a dry run of its creation.
func (a Previews) previewCreation(ctx context.Context, d *owned.Desired) (Previewed, error) {
	if err := errors.Join(plan.CheckValues(d), a.Cache.require(d)); err != nil {
		return Previewed{}, err
	}
	feature.SetGenerated(ctx, d, feature.PlanFill(d.Generate, nil))
	p := Previewed{Change: changeOf(d, forecast.Create)}
	forecast.SetEffects(&p.Change, nil)
	answer, err := write.PostDryRun(ctx, d, d.Object.GetName())
	switch {
	case err == nil:
		p.Live, err = d.Kind.AsLive(answer)
		return p, err
	case isNamespaceMissing(err), meta.IsNoMatchError(err):
		p.Note = "the API server could not be asked: " + write.WithoutValues(err).Error()
		return p, nil
	}
	return Previewed{}, write.WithSizeRemedy(err)
}

// isNamespaceMissing reports whether the API server refuses a creation because the namespace does not exist. The namespace may be a child
// that is created earlier.
func isNamespaceMissing(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Kind == "namespaces"
}

// previewApply previews an apply of an object, by dry runs.
func (a Previews) previewApply(ctx context.Context, d *owned.Desired, live client.Object, planned plan.Plan) (Previewed, error) {
	feature.SetGenerated(ctx, d, feature.PlanFill(d.Generate, live))
	differences, answer, err := differencesOfApply(ctx, d, live)
	if plan.IsInvalid(err) {
		return a.previewRefused(ctx, d, live, err)
	}
	if err != nil {
		return Previewed{}, write.WithSizeRemedy(err)
	}
	if err := plan.SilentRefusal(d, answer); err != nil {
		return a.previewRefused(ctx, d, live, fmt.Errorf("apply %s: %w", d, err))
	}
	p := Previewed{Change: changeOf(d, forecast.Apply), Live: answer}
	p.Differences = differences
	if feature.ChoosesPort(d, live, answer) {
		p.Note = "the API server chooses another node port when it is written"
	}
	if feature.LacksRunFinalizer(d, live) {
		p.Effects = append(p.Effects, "it gets the finalizer that keeps it until its end is recorded")
	}
	if planned.Verb == plan.DoBind {
		p.Effects = append(p.Effects, "its owner reference is taken off")
	}
	forecast.SetEffects(&p.Change, live)
	return p, nil
}

// previewTakeBack previews the adoption of an object that a former owner of this name controls. It sends no dry run of an apply: the API
// server would refuse it, because the object would have two controllers.
func previewTakeBack(d *owned.Desired, live client.Object) Previewed {
	found := differ{hidden: isSecret(d)}
	found.addLocal(d, live)
	p := Previewed{Change: changeOf(d, forecast.Apply), Live: live}
	p.Differences, p.Effects = found.found, []string{"it is taken back from a former owner of this name"}
	forecast.SetEffects(&p.Change, live)
	return p
}

// previewRefused previews an object that the API server refuses to change. If the child has the option Recreate, it previews the
// recreation. Otherwise the error is the refusal.
func (a Previews) previewRefused(ctx context.Context, d *owned.Desired, live client.Object, refusal error) (Previewed, error) {
	if !d.Options.Recreate {
		return Previewed{Live: live}, refusal
	}
	p, err := a.previewRecreation(ctx, d, live, "")
	if err != nil {
		return p, errors.Join(refusal, fmt.Errorf("%s is not recreated, since that would be refused too: %w", d, err))
	}
	found := differ{hidden: isSecret(d)}
	found.addLocal(d, live)
	p.Differences = found.found
	return p, nil
}

// previewRecreation previews an object that would be deleted and then created again. A dry run creates the new object under another name.
func (a Previews) previewRecreation(ctx context.Context, d *owned.Desired, live client.Object, effect string) (Previewed, error) {
	p := Previewed{Change: changeOf(d, forecast.Recreate)}
	if effect != "" {
		p.Effects = []string{effect}
	}
	forecast.SetEffects(&p.Change, live)
	answer, err := write.TryCreation(ctx, d)
	if err != nil {
		return Previewed{Live: live}, err
	}
	answer.SetName(d.Object.GetName())
	p.Live, err = d.Kind.AsLive(answer)
	return p, err
}

// previewExpansion previews the replacement of a StatefulSet whose claim templates have to grow. If the API server would refuse other
// changes of the StatefulSet, accepted is false.
func (a Previews) previewExpansion(ctx context.Context, d *owned.Desired, live client.Object) (p Previewed, accepted bool, err error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return Previewed{}, false, err
	}
	grown, err := feature.Growth(d, live)
	if err != nil {
		return Previewed{}, false, err
	}
	if accepted, err := write.AcceptsRest(ctx, d, &unstructured.Unstructured{Object: content}, grown); err != nil || !accepted {
		return Previewed{}, false, err
	}
	p, err = a.previewRecreation(ctx, d, live, "")
	if err != nil {
		return Previewed{}, false, fmt.Errorf("%s is not replaced by one with larger volumes, since that would be refused: %w", d, err)
	}
	found := differ{}
	found.addLocal(d, live)
	p.Change = changeOf(d, forecast.Replace)
	p.Differences = found.found
	forecast.SetEffects(&p.Change, live)
	for _, g := range grown {
		p.Effects = append(p.Effects, fmt.Sprintf("the claims of %s grow from %s to %s", g.Template, g.From.String(), g.To.String()))
	}
	return p, true, nil
}
