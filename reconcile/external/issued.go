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

// mark is an annotation of a Secret by which the values of the last issue are told from all others: of another thing, of an earlier issue, of a
// process that was the leader before, from a backup, or put in by hand.
type mark struct {
	published string // a random name of the write
	sum       string // a hash of the values. Its key is in the status, so the metadata of the Secret alone says nothing of them
}

func (m mark) String() string { return m.published + ":" + m.sum }

func markOf(secret *corev1.Secret) (m mark) {
	m.published, m.sum, _ = strings.Cut(secret.Annotations[record.Issued], ":")
	return m
}

// isIssuing reports whether something was or is to be issued that no Secret has for certain.
func (r *Record) isIssuing() bool { return r.Issued != "" && r.Published == "" }

// hasIssued reports whether a Secret has the values of the last issue. If the process ended before the write was recorded, it may be any write.
func (r *Record) hasIssued(secret *corev1.Secret, keys []string) bool {
	m := markOf(secret)
	return r.Issued != "" && m.published != "" && (r.isIssuing() || m.published == r.Published) && m.sum == r.sumOf(secret, keys)
}

func (r *Record) sumOf(secret *corev1.Secret, keys []string) string {
	h := hmac.New(sha256.New, []byte(r.Issued))
	for _, key := range keys {
		_, _ = fmt.Fprintf(h, "%q %q\n", key, secret.Data[key]) // a hash returns no error
	}
	return hex.EncodeToString(h.Sum(nil))
}
