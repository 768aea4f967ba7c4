package servedkinds

import (
	"context"
	"errors"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// Only the goroutine of [Kinds.Start] calls the methods in this file, unless the comment of a method says otherwise.

// act starts or stops the informer of a kind if the observation requires it.
func (k *Kinds) act(ctx context.Context, kd *kind, now observation) {
	k.mu.Lock()
	do := decide(kd.phase, kd.shown, now)
	if kd.phase == running {
		kd.shown = kd.shown.merge(now)
	}
	k.mu.Unlock()
	switch do {
	case start:
		err := k.startInformer(ctx, kd, now)
		if err == nil {
			err = k.attachAll(ctx, kd)
		}
		k.started(kd, err)
	case stop:
		k.stopInformer(ctx, kd)
	}
}

// startInformer starts the informer of a kind that is served.
func (k *Kinds) startInformer(ctx context.Context, kd *kind, now observation) error {
	if err := checkMapping(k.mapper, kd.gvk, now); err != nil {
		return err
	}
	if kd.leftover { // the informer has objects that it held before the kind was removed
		if err := k.cache.RemoveInformer(ctx, kd.object); err != nil {
			return err
		}
		kd.leftover = false
	}
	informer, err := k.cache.GetInformer(ctx, kd.object, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	kd.phase, kd.shown, kd.informer = running, now, informer
	return nil
}

// attachAll adds the handlers of each watch that has no handlers at the informer yet.
func (k *Kinds) attachAll(ctx context.Context, kd *kind) error {
	k.mu.Lock()
	var missing []*Watch
	for _, w := range kd.watches {
		if w.attached == nil {
			missing = append(missing, w)
		}
	}
	k.mu.Unlock()
	var errs []error
	for _, w := range missing {
		errs = append(errs, k.attach(ctx, kd, w))
	}
	return errors.Join(errs...)
}

// attach adds the indexes and handlers of a watch to the informer. It permits reads when the handlers have got all initial events.
func (k *Kinds) attach(ctx context.Context, kd *kind, w *Watch) error {
	for field, extract := range w.options.Indexes {
		err := k.cache.IndexField(ctx, kd.object, field, extract)
		if err != nil && !strings.Contains(err.Error(), "indexer conflict") { // another watch has added the same index; client-go has no type for this error
			return err
		}
	}
	a, err := newAttachment(w, kd.informer)
	if err != nil {
		return err
	}
	k.mu.Lock()
	w.attached = a
	k.mu.Unlock()
	if w.ctx.Err() != nil { // the watch has ended in between
		a.stop()
		return nil
	}
	k.goroutines.Go(func() {
		if a.waitForSync(ctx, func() { k.isSlow(w, a) }) {
			k.synced(w, a)
		}
	})
	return nil
}

// started is called after each attempt to start an informer or to add handlers. It logs the first of several failures, and schedules
// another attempt.
func (k *Kinds) started(kd *kind, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil {
		kd.failing = false
		return
	}
	if !kd.failing {
		k.logger.Error(err, "Cannot watch a kind that is served now", "kind", kd.gvk.String())
	}
	kd.failing = true
	k.schedules[kd.gvk.GroupVersion()].within(startRetry, time.Now())
}

// synced permits the reads of a watch, because the handlers have got all initial events. Any goroutine may call it.
func (k *Kinds) synced(w *Watch, a *attachment) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if w.attached == a { // the kind is still served
		k.logger.V(1).Info("A kind is served and watched", "kind", w.kind.gvk.String())
		if w.options.Appeared != nil {
			w.options.Appeared()
		}
		w.setServed(true)
	}
}

// isSlow is called if the handlers of a watch have not got all initial events within slowStart. It enqueues what the function Requests of
// the watch's options returns, so that the next reconcile of each object can report that the kind is not watched yet.
func (k *Kinds) isSlow(w *Watch, a *attachment) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if w.attached == a {
		w.changed()
	}
}

// stopInformer removes the handlers of a kind that is not served any more, and ends the permission to read. When no read is left, it
// removes the informer.
func (k *Kinds) stopInformer(ctx context.Context, kd *kind) {
	k.logger.V(1).Info("A kind is not served any more", "kind", kd.gvk.String())
	k.mu.Lock()
	kd.phase = draining
	var attached []*attachment
	var gone []func(context.Context)
	for _, w := range kd.watches {
		if w.attached != nil {
			attached = append(attached, w.attached)
		}
		if w.served && w.options.Gone != nil {
			gone = append(gone, w.options.Gone)
		}
		w.attached = nil
		w.setServed(false)
	}
	k.mu.Unlock()
	for _, f := range gone {
		f(ctx)
	}
	for _, a := range attached {
		a.stop()
	}
	k.removeInformer(ctx, kd)
}

// removeInformer removes the informer of a kind that is not served any more, unless somebody still reads.
func (k *Kinds) removeInformer(ctx context.Context, kd *kind) {
	k.mu.Lock()
	readers := kd.readers
	k.mu.Unlock()
	if readers > 0 { // when the last read ends, the loop runs again
		return
	}
	// A cache that is limited to namespaces asks the RESTMapper whether the kind is namespaced. If the RESTMapper has forgotten the kind, this
	// call fails. Then the informer is removed before the next start.
	err := k.cache.RemoveInformer(ctx, kd.object)
	if err != nil {
		k.logger.Error(err, "The informer of a kind that is not served any more cannot be removed: its errors can be ignored", "kind", kd.gvk.String())
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	kd.phase, kd.shown, kd.informer, kd.leftover = idle, observation{}, nil, err != nil
	k.schedules[kd.gvk.GroupVersion()].within(quickDelays[0], time.Now()) // the kind may be served again already
}

// checked ends the wait of the controllers that start while the kind is not served.
func (k *Kinds) checked(kd *kind) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if kd.phase == running {
		return
	}
	for _, w := range kd.watches {
		w.settle()
	}
}
