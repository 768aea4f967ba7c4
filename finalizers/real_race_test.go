package finalizers_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/finalizers"
)

// Controllers with a finalizer each, on one object, each with its own reads: nobody's entry may be lost or come back.
func TestRealRace(t *testing.T) {
	s := newServer(t)
	const rounds = 40
	names := []string{account, database, theirs}
	for round := range rounds {
		obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: fmt.Sprint("round-", round)}}
		require.NoError(t, s.Create(t.Context(), obj))
		conflicts := race(t, s, obj, names, func(ctx context.Context, mine *corev1.ConfigMap, name string) error {
			_, err := finalizers.Ensure(ctx, s, mine, name)
			return err
		})
		require.ElementsMatch(t, names, s.read(t, obj), "round %d, %d conflicts", round, conflicts)

		require.NoError(t, s.Delete(t.Context(), obj))
		race(t, s, obj, names, func(ctx context.Context, mine *corev1.ConfigMap, name string) error {
			outcome, err := finalizers.Finalize(ctx, s, mine, name, func(ctx context.Context) error {
				held := &corev1.ConfigMap{}
				if err := s.Get(ctx, client.ObjectKeyFromObject(obj), held); err != nil {
					return fmt.Errorf("the object went before the cleanup of %s: %w", name, err)
				}
				return nil
			})
			if err == nil && outcome != finalizers.Finished {
				err = fmt.Errorf("outcome %s", outcome)
			}
			return err
		})
		err := s.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)
		require.True(t, apierrors.IsNotFound(err), "round %d: %v", round, err)
	}
}

// race runs act for each name at once, again after each conflict, on a copy that was read before all of them.
func race(t *testing.T, s *server, obj *corev1.ConfigMap, names []string, act func(context.Context, *corev1.ConfigMap, string) error) (conflicts int) {
	t.Helper()
	s.read(t, obj)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		errs = make([]error, len(names))
	)
	for i, name := range names {
		wg.Go(func() {
			mine := obj.DeepCopy()
			for {
				err := act(ctx, mine, name)
				if !apierrors.IsConflict(err) {
					errs[i] = err
					return
				}
				mu.Lock()
				conflicts++
				mu.Unlock()
				if errs[i] = s.Get(ctx, client.ObjectKeyFromObject(obj), mine); errs[i] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	for i, err := range errs {
		require.NoError(t, err, names[i])
	}
	require.NotZero(t, conflicts, "the copies were read before, so all but one lose at first")
	return conflicts
}
