package external

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/opblocks/opblocks/internal/record"
)

// mark is an annotation of a Secret. It identifies the values that Resource.Issue has returned last. A Secret without this mark may have
// other values: of another thing, of an earlier call of Issue, of a process that was the leader before, of a backup, or of a person.
type mark struct {
	published string // a random text that identifies the write of the Secret
	sum       string // a hash of the values. The key of the hash is in the status, so the annotation alone reveals nothing about the values
}

func (m mark) String() string { return m.published + ":" + m.sum }

func markOf(secret *corev1.Secret) (m mark) {
	m.published, m.sum, _ = strings.Cut(secret.Annotations[record.Issued], ":")
	return m
}

// isIssuing reports whether Resource.Issue was called, and it is not recorded that a Secret has the values which it
// returned.
func (r *Record) isIssuing() bool { return r.Issued != "" && r.Published == "" }

// hasIssued reports whether a Secret has the values that Resource.Issue has returned last. If the last write of the Secret was not
// recorded, a Secret of any write with these values is accepted.
func (r *Record) hasIssued(secret *corev1.Secret, keys []string) bool {
	m := markOf(secret)
	return r.Issued != "" && m.published != "" && (r.isIssuing() || m.published == r.Published) && m.sum == r.sumOf(secret, keys)
}

func (r *Record) sumOf(secret *corev1.Secret, keys []string) string {
	h := hmac.New(sha256.New, []byte(r.Issued))
	for _, key := range keys {
		_, _ = fmt.Fprintf(h, "%q %q\n", key, secret.Data[key]) // writing to a hash returns no error
	}
	return hex.EncodeToString(h.Sum(nil))
}
