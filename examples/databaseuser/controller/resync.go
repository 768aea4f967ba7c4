package controller

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/opblocks/opblocks/examples/databaseuser/accounts"
	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/reconcile"
)

// syncRecords holds, in memory, when the accounts of each DatabaseUser were last known to be as specified. It is empty when
// the operator starts: then each account is looked up once.
type syncRecords struct {
	mu    sync.Mutex
	byUID map[types.UID]syncRecord
}

type syncRecord struct {
	generation int64
	version    string // the version of the password
	due        time.Time
	// fingerprints are what the server stored for the password, by host. They never leave this process.
	fingerprints map[string]accounts.Fingerprint
}

func (s *syncRecords) get(u *userv1alpha1.DatabaseUser) syncRecord {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byUID[u.UID]
}

// last returns the record of the DatabaseUser of the pass. Its resync is due if a person has requested the pass.
func (s *syncRecords) last(ctx context.Context, u *userv1alpha1.DatabaseUser) syncRecord {
	record := s.get(u)
	if reconcile.Requested(ctx) {
		record.due = time.Time{}
	}
	return record
}

func (s *syncRecords) set(u *userv1alpha1.DatabaseUser, record syncRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byUID == nil {
		s.byUID = map[types.UID]syncRecord{}
	}
	s.byUID[u.UID] = record
}

func (s *syncRecords) forget(u *userv1alpha1.DatabaseUser) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byUID, u.UID)
}
