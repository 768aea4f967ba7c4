package v1

// Hub marks the version that the others are converted to and from.
func (*Memcached) Hub() {}
