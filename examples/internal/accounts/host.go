package accounts

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
	"strings"
)

const maxHostLength = 255

// CanonicalHost returns a host in the form in which the server stores it, in lower case, or an [*InvalidError].
//
// A host is a name or an address, in which % matches any characters and _ any one character, or an IPv4 network such as
// 10.1.0.0/255.255.0.0. (MySQL also accepts 10.1.0.0/16, MariaDB does not.) localhost means the server's socket; if the server
// resolves names, also 127.0.0.1.
func CanonicalHost(host string) (string, error) {
	address, mask, isNetwork := strings.Cut(host, "/")
	switch {
	case host == "":
		return "", invalid("host", "is empty; %% stands for every host")
	case len(host) > maxHostLength:
		return "", invalid("host", "is longer than %d characters", maxHostLength)
	case isNetwork && !network(address, mask):
		return "", invalid("host", "is not an IPv4 network such as 10.1.0.0/255.255.0.0")
	case !isNetwork && strings.ContainsFunc(host, func(r rune) bool { return !inHost(r) }):
		return "", invalid("host", "may only have letters, digits, and any of . - : %% _ in it")
	}
	return strings.ToLower(host), nil
}

func inHost(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune(".-:%_", r)
}

// network reports whether an address has no bit outside its mask. The server accepts no login from other networks.
func network(address, mask string) bool {
	a, err := netip.ParseAddr(address)
	if err != nil || !a.Is4() {
		return false
	}
	m, err := netip.ParseAddr(mask)
	if err != nil || !m.Is4() {
		return false
	}
	ones := binary.BigEndian.Uint32(m.AsSlice())
	prefix, err := a.Prefix(bits.LeadingZeros32(^ones))
	return err == nil && prefix.Masked().Addr() == a && ones == ^uint32(0)<<(32-prefix.Bits())
}
