package calls

import (
	"errors"
	"fmt"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWithoutQueries(t *testing.T) {
	cause := errors.New("connection refused")
	get := func(u string) error { return &url.Error{Op: "Get", URL: u, Err: cause} }
	for name, tc := range map[string]struct {
		reason string
		err    error
		want   string
	}{
		"query":    {"a token may be in it", get("https://api/v1/a?token=hunter2"), `Get "https://api/v1/a?(hidden)": connection refused`},
		"fragment": {"it is not sent, but shown", get("https://api/a#hunter2"), `Get "https://api/a#(hidden)": connection refused`},
		"user":     {"net/http hides only the password", get("https://hunter2:***@api/a@b"), `Get "https://(hidden)@api/a@b": connection refused`},
		"wrapped":  {"with what says what it means", Refused("No", fmt.Errorf("look: %w", get("https://api?a=hunter2"))), `look: Get "https://api?(hidden)": connection refused`},
		"joined": {
			"each of them", errors.Join(get("https://a?x=hunter2"), get("https://b?x=hunter2")),
			"Get \"https://a?(hidden)\": connection refused\nGet \"https://b?(hidden)\": connection refused",
		},
		"nested": {
			"a redirect", &url.Error{Op: "Get", URL: "https://a?x=hunter2", Err: get("https://b?y=hunter2")},
			`Get "https://a?(hidden)": Get "https://b?(hidden)": connection refused`,
		},
		"not valid": {"it is quoted", get("https://api/\"\n?x=hunter2"), `Get "https://api/\"\n?(hidden)": connection refused`},
		"no scheme": {"a mistake in the configuration", get("api:80?x=hunter2"), `Get "api:80?(hidden)": connection refused`},
		"nothing":   {"there is nothing to hide", get("https://api/a"), `Get "https://api/a": connection refused`},
	} {
		t.Run(name, func(t *testing.T) {
			err := WithoutQueries(tc.err)
			require.Equal(t, tc.want, err.Error(), tc.reason)
			require.ErrorIs(t, err, cause)
			require.Equal(t, IsRefused(tc.err), IsRefused(err))
		})
	}
	require.NoError(t, WithoutQueries(nil))
}
