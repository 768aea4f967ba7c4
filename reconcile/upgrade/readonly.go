package upgrade

import (
	"errors"
	"fmt"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// errNotSent is the error of a request that is neither a read nor a dry run.
var errNotSent = errors.New("it was not sent: a plan sends only reads and dry runs")

// readOnly sends reads and dry runs, and refuses all other requests. It also refuses the dry run of a deletion, because only
// the body of the request says that it is a dry run.
type readOnly struct {
	http.RoundTripper
	prefix string // the part of a path before /api and /apis, for an API server behind a proxy
}

func (r readOnly) RoundTrip(request *http.Request) (*http.Response, error) {
	if r.isHarmless(request) {
		return r.RoundTripper.RoundTrip(request)
	}
	if request.Body != nil {
		_ = request.Body.Close() // a RoundTripper has to close the body
	}
	return nil, fmt.Errorf("%s %s: %w", request.Method, request.URL.Path, errNotSent)
}

// connection matches the paths of requests that connect to a pod, a service or a node, whatever the method is. Such a
// request has no dry run.
var connection = regexp.MustCompile(`/(pods|services|nodes)/[^/]+/(attach|exec|portforward|proxy)(/|$)`)

// object matches the paths of objects, and of the subresources whose dry run certainly stores nothing. Other subresources do not
// store an object, or do more than that: for example, the dry run of a service account token returns a valid token.
var object = regexp.MustCompile(`^/(api/[^/]+|apis/[^/]+/[^/]+)/(namespaces/[^/]+/)?[^/]+(/[^/]+(/(status|scale))?)?$`)

// isHarmless reports whether a request is a read or a dry run.
func (r readOnly) isHarmless(request *http.Request) bool {
	clean := path.Clean(request.URL.Path) // a proxy before the API server may clean the path in this way
	if request.Header.Get("Upgrade") != "" || connection.MatchString(clean) {
		return false
	}
	switch request.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return true
	case http.MethodPost, http.MethodPut, http.MethodPatch:
		written, isOurs := strings.CutPrefix(clean, r.prefix)
		return isOurs && object.MatchString(written) && slices.Equal(request.URL.Query()["dryRun"], []string{metav1.DryRunAll})
	}
	return false
}
