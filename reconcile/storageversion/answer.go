package storageversion

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// verdict says what an error for one object means. It decides whether a walk over all objects continues.
type verdict string

const (
	// refused means that the schema or an admission check does not accept the object. The walk continues.
	refused verdict = "refused"

	// failing means that the API server cannot write the object, for instance because it cannot convert it. The walk continues.
	failing verdict = "failing"

	// denied means that the operator lacks a permission, which it needs for every object. The walk ends.
	denied verdict = "denied"

	// unanswered means that the API server cannot be reached, or is too busy. The request is repeated, and then the walk ends.
	unanswered verdict = "unanswered"
)

// judge returns the verdict of an error.
func judge(err error) verdict {
	switch {
	case isDenial(err):
		return refused
	case errors.Is(err, errUnreadable):
		return failing
	case !isAnswer(err), isBusy(err):
		return unanswered
	case lacksRight(err):
		return denied
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err):
		return refused
	}
	return failing
}

// isTransient reports whether the same request may succeed a moment later. If a conversion webhook cannot be reached, the API server
// answers with an internal error.
func isTransient(err error) bool {
	v := judge(err)
	return v == unanswered || v == failing && apierrors.IsInternalError(err)
}

// isAnswer reports whether the error is an answer of the API server.
func isAnswer(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}

// isBusy reports whether the API server, or a proxy before it, has answered that it cannot handle the request now. This includes an
// answer that refuses the token, because client-go renews the token.
func isBusy(err error) bool {
	var status apierrors.APIStatus
	codes := []int32{http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}
	return apierrors.IsServerTimeout(err) || errors.As(err, &status) && slices.Contains(codes, status.Status().Code)
}

// isDenial reports whether a webhook or a policy has refused an object. Both may answer with any status code, so isDenial compares
// the text (apiserver, pkg/admission/plugin/webhook/errors and pkg/admission/plugin/policy/validating).
func isDenial(err error) bool {
	return isAnswer(err) && (strings.Contains(err.Error(), "denied the request") || strings.Contains(err.Error(), "denied request"))
}

// lacksRight reports whether a request was refused because a permission is missing. An admission check may answer 403 too, so lacksRight
// compares the text (apiserver, pkg/endpoints/handlers/responsewriters).
func lacksRight(err error) bool {
	if !apierrors.IsForbidden(err) || isDenial(err) {
		return false
	}
	_, verb, found := strings.Cut(err.Error(), `: User "`)
	return found && strings.Contains(verb, `" cannot `) && strings.Contains(verb, " resource ")
}
