package calls

import (
	"net/url"
	"strconv"
	"strings"
)

// hidden replaces the sensitive parts of a URL in an error.
const hidden = "(hidden)"

// WithoutQueries returns an error whose text shows neither the query, the fragment nor the user of a URL. Errors of net/http quote the
// whole URL, and its query may contain a token. The new error wraps err.
func WithoutQueries(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	short := text
	for _, u := range urlsOf(err) {
		quoted := strconv.Quote(u)
		for _, form := range []string{u, quoted[1 : len(quoted)-1]} {
			short = strings.ReplaceAll(short, form, hideParts(form))
		}
	}
	if short == text {
		return err
	}
	return &shortError{err, short}
}

type shortError struct {
	err  error
	text string
}

func (e *shortError) Error() string { return e.text }
func (e *shortError) Unwrap() error { return e.err }

// urlsOf returns the URLs that an error quotes, also in the errors that it wraps.
func urlsOf(err error) (all []string) {
	if e, ok := err.(*url.Error); ok && e.URL != "" { //nolint:errorlint // the tree is walked
		all = append(all, e.URL)
	}
	switch e := err.(type) { //nolint:errorlint // the same
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			all = append(all, urlsOf(inner)...)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			all = append(all, urlsOf(inner)...)
		}
	}
	return all
}

// hideParts returns a URL without its user, its query and its fragment. The URL may be invalid.
func hideParts(u string) string {
	if i := strings.IndexAny(u, "?#"); i >= 0 {
		u = u[:i+1] + hidden
	}
	scheme, rest, ok := strings.Cut(u, "://")
	if !ok {
		return u
	}
	host, path, hasPath := strings.Cut(rest, "/")
	if at := strings.LastIndex(host, "@"); at >= 0 {
		host = hidden + host[at:]
	}
	if hasPath {
		path = "/" + path
	}
	return scheme + "://" + host + path
}
