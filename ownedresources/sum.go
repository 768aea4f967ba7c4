package ownedresources

import (
	"crypto/sha256"
	"encoding/hex"
	"sync"

	"github.com/opblocks/opblocks/internal/compare"
)

// fingerprint is a short hash of differences, empty if there are none.
func fingerprint(differences []compare.Difference) string {
	if len(differences) == 0 {
		return ""
	}
	var text []byte
	for _, d := range differences {
		for _, part := range [...]string{d.Path, d.Want, d.Have} {
			text = append(append(text, part...), 0)
		}
	}
	s := sumOf(text)
	return string(s[:12])
}

// sum is the hash of what would be sent: the first half of a SHA-256, in hexadecimal.
type sum [sha256.Size]byte

func sumOf(encoded []byte) (s sum) {
	digest := sha256.Sum256(encoded)
	hex.Encode(s[:], digest[:len(s)/2])
	return s
}

// buffers are for encoded objects.
var buffers = sync.Pool{New: func() any { return new(make([]byte, 0, 4096)) }}
