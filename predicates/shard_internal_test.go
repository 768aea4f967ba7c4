package predicates

import "testing"

// TestJumpHash compares with the values that other implementations of the paper publish.
func TestJumpHash(t *testing.T) {
	for _, tc := range []struct {
		key         uint64
		count, want int
	}{
		{10863919174838991, 11, 6},
		{2016238256797177309, 11, 3},
		{1673758223894951030, 11, 5},
		{2, 100001, 80343},
		{2201, 100001, 22152},
		{2202, 100001, 15018},
	} {
		if got := jumpHash(tc.key, tc.count); got != tc.want {
			t.Errorf("jumpHash(%d, %d) = %d, want %d", tc.key, tc.count, got, tc.want)
		}
	}
}
