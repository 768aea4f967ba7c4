package apply

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/internal/forecast"
	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/feature"
	"github.com/opblocks/opblocks/internal/record"
)

// previewRun does the same as [Previews.Preview] for a Job of [ownedresources.Child.RunOnce].
func (a Previews) previewRun(ctx context.Context, o *owned.Owner, child *owned.Declared) (Previewed, error) {
	d, err := desireRun(o, child)
	if err != nil {
		return Previewed{}, err
	}
	live, _, err := read(ctx, a.Writes, o, d.Kind, d.Object)
	if err != nil {
		return Previewed{}, err
	}
	var job *feature.JobState
	if live != nil {
		if ref := metav1.GetControllerOfNoCopy(live); ref == nil || ref.UID != o.Reference.UID {
			return a.previewLive(ctx, d)
		}
		if job, err = feature.Observe(live); err != nil {
			return Previewed{}, err
		}
	}
	p := Previewed{Change: changeOf(d, forecast.None), Live: live}
	last := record.ParseRun(o.Object.GetAnnotations()[record.Key(record.RunPrefix, o.Namespace, d.Object)])
	//exhaustive:enforce
	switch feature.NextRunAction(last, child.Content, job) {
	case feature.RunCreate:
		return a.previewCreation(ctx, d)
	case feature.RunReplace:
		return a.previewRecreation(ctx, d, live, "")
	case feature.RunApply, feature.RunIdentify:
		return a.previewLive(ctx, d)
	case feature.RunName, feature.RunStart:
		p.Action, p.Effects = forecast.Apply, []string{"it is started"}
	case feature.RunDiscard:
		p.Action, p.Effects = forecast.Delete, []string{"it was never started, and is not needed"}
	case feature.RunWait, feature.RunDeletePods:
		return p, owned.NewWaiting(owned.ReasonTerminating, 0, fmt.Sprintf("%s is being deleted", d))
	case feature.RunRecordComplete, feature.RunRecordFailed, feature.RunRelease, feature.RunNothing: // these actions change only the owner's annotation and the finalizer
	}
	return p, nil
}
