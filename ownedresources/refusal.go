package ownedresources

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// recoverFrom handles an apply that the API server has refused. It returns the object if that has been written in another
// way, or an error: the refusal itself if it cannot help.
func (a *applier) recoverFrom(ctx context.Context, d *desired, refusal error) (client.Object, error) {
	if !isInvalid(refusal) {
		return nil, refusal
	}
	live, err := a.readTree(ctx, d) // it may have got another owner, which the cache does not show yet
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", d, err)
	}
	if err := errors.Join(d.owner.mayWrite(d, live), d.checkGenerated(live)); err != nil {
		return nil, err
	}
	answer, err := a.overrule(ctx, d, live, refusal)
	switch {
	case err != nil || answer != nil:
		return answer, err
	case d.options.recreate:
		return nil, a.recreate(ctx, d, live, refusal)
	}
	return nil, refusal
}

// refuse recreates the object if that is allowed, since a field cannot be changed. Otherwise it returns the refusal.
func (a *applier) refuse(ctx context.Context, d *desired, refusal error) error {
	refusal = fmt.Errorf("apply %s: %w", d, refusal)
	if !d.options.recreate {
		return refusal
	}
	live, err := a.readTree(ctx, d)
	if err != nil {
		return fmt.Errorf("read %s: %w", d, err)
	}
	if err := d.owner.mayWrite(d, live); err != nil {
		return err
	}
	return a.recreate(ctx, d, live, refusal)
}

const reasonRecreating = "Recreating"

// recreate deletes an object because the API server refuses to change it. The event of its deletion triggers the
// reconcile that creates it. Nothing in the refusal distinguishes an immutable field from a wrong value for certain, so
// a dry run tries first to create the new object, under another name.
//
// If the object was itself created for this change, another one would be refused too. If another writer has put an
// object in its place, that is deleted again, less often each time.
func (a *applier) recreate(ctx context.Context, d *desired, live client.Object, refusal error) error {
	if a.owners.isRecreated(d, live) {
		return fmt.Errorf("recreated once for this change already: %w", refusal)
	}
	if err := a.slowDownByName(d.owner, d.kind, live, recreation, d.sum); err != nil {
		return err
	}
	if _, err := a.postDryRun(ctx, d, ""); err != nil {
		return errors.Join(refusal, fmt.Errorf("%s is not recreated, since that would be refused too: %w", d, err))
	}
	if err := a.confirm(ctx, d.owner); err != nil {
		return err
	}
	if d.binding != byReference && (!d.owner.isMarkedBy(live, d.kind.gvk.GroupKind()) || !isManagedBy(live, d.owner.fieldManager)) {
		return refusal
	}
	if err := deleteExactly(ctx, d.owner.client, live, metav1.DeletePropagationBackground); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s to recreate it: %w", d, err)
	}
	a.owners.setRecreated(d)
	a.countByName(d.owner, d.kind, live, recreation, d.sum)
	a.report(ctx, d.owner, d.kind, live, outcomeRecreated, "")
	a.writes.Forget(live, client.ObjectKeyFromObject(live))
	return &WaitingError{reason: reasonRecreating, message: fmt.Sprintf("%s is recreated, since one of its fields cannot be changed", d)}
}

// fieldPath is a path as the API server writes it in the causes of an error: spec.containers[0].ports[1].name, or
// metadata.labels[example.com/team].
type fieldPath []pathElement

// pathElement is the name of a field, a key of a map, or the index of an item.
type pathElement struct {
	name    string
	index   int
	isIndex bool
}

// parseFieldPath parses a path. It returns false if the path is not well-formed.
func parseFieldPath(path string) (fieldPath, bool) {
	var elements fieldPath
	for path != "" {
		if inBrackets, isKey := strings.CutPrefix(path, "["); isKey {
			key, rest, closed := strings.Cut(inBrackets, "]")
			if !closed || len(elements) == 0 {
				return nil, false
			}
			if i, err := strconv.ParseUint(key, 10, 31); err == nil {
				elements = append(elements, pathElement{index: int(i), isIndex: true})
			} else {
				elements = append(elements, pathElement{name: key})
			}
			path = rest
			continue
		}
		if len(elements) > 0 {
			rest, dotted := strings.CutPrefix(path, ".")
			if !dotted {
				return nil, false
			}
			path = rest
		}
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		if end == 0 {
			return nil, false
		}
		elements = append(elements, pathElement{name: path[:end]})
		path = path[end:]
	}
	return elements, len(elements) > 0
}

// jsonPointer writes a path by RFC 6901.
func jsonPointer(path fieldPath) string {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	var pointer strings.Builder
	for _, element := range path {
		pointer.WriteByte('/')
		if element.isIndex {
			pointer.WriteString(strconv.Itoa(element.index))
		} else {
			pointer.WriteString(escape.Replace(element.name))
		}
	}
	return pointer.String()
}
