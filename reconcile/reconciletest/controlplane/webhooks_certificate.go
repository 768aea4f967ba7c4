package controlplane

import (
	"cmp"
	"os"
	"path/filepath"
	"time"
)

// Certificate is a serving certificate of webhooks. The API server trusts the zero value, which is valid for a year.
type Certificate struct {
	// End is the time until which the certificate is valid. If it is zero, the certificate is valid for a year. If it is in the past, the
	// certificate has expired.
	End time.Time

	// Foreign means that the certificate is signed by a CA that the API server does not trust.
	Foreign bool
}

// write makes the certificate and its key, and replaces their files in a folder.
func (c Certificate) write(folder string, signer *authority) error {
	if c.Foreign {
		var err error
		if signer, err = newAuthority(); err != nil {
			return err
		}
	}
	serving, err := signer.webhook(cmp.Or(c.End.UTC(), time.Now().UTC().Add(validity)))
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{"tls.crt": serving.certificate, "tls.key": serving.key} {
		if err := replaceFile(filepath.Join(folder, name), content); err != nil {
			return err
		}
	}
	return nil
}

// replaceFile replaces a file in one step, so that nobody reads an incomplete file.
func replaceFile(path string, content []byte) error {
	next := path + ".next"
	if err := os.WriteFile(next, content, 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}
