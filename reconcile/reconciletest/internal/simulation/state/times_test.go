package state

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWithoutTimes(t *testing.T) {
	tests := map[string]struct{ reason, name, want string }{
		"None":           {"a number is no time", "web-17-till-8080", "web-17-till-8080"},
		"Seconds":        {"since 1970", "web-946684805", "web-<time>"},
		"Minutes":        {"as CronJob names its Jobs", "web-15778090", "web-<time>"},
		"MinutesSeconds": {"for runs that are due within a minute", "web-15778140-4", "web-<time>"},
		"Nanoseconds":    {"since 1970", "web-946684800000000123-a", "web-<time>-a"},
		"Date":           {"of the virtual clock", "web-20000101-120000", "web-<time>"},
		"File":           {"in a path", "/backup/web-20000101-010002.rdb", "/backup/web-<time>.rdb"},
		"OtherDate":      {"which somebody has chosen", "web-20260101", "web-20260101"},
		"Index":          {"after the time stands something else", "web-15778090-a1", "web-<time>-a1"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, withoutTimes(tc.name), tc.reason) })
	}
}
