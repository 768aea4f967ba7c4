module github.com/opblocks/opblocks/hack/mutants

go 1.26.0
