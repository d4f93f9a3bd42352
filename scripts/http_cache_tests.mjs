// Counts the results of http-cache-tests: results.json on standard input; the arguments are the suite's directory, and
// the page that names each failure.
// It ends with 1 if fewer tests pass than have to.

import fs from 'node:fs'

const REQUIRED_MIN = 124
const OPTIMAL_MIN = 57

const [, , suite, page] = process.argv
const reasons = fs.readFileSync(page, 'utf8')
// As the published results: without the suite for `Surrogate-Control`, a note of the year 2001.
const { default: groups } = await import(`${suite}/tests/index.mjs`)

let text = ''
for await (const part of process.stdin) text += part
const results = JSON.parse(text)

const passed = { required: 0, optimal: 0, check: 0 }
const all = { required: 0, optimal: 0, check: 0 }
const failures = []
for (const group of groups) {
  for (const test of group.tests) {
    if (test.browser_only) continue
    const kind = test.kind ?? 'required'
    const result = results[test.id]
    all[kind] += 1
    if (result === true) passed[kind] += 1
    else if (kind !== 'check') {
      const known = reasons.includes(`| \`${test.id}\` |`) ? '' : ' (the page does not name it)'
      failures.push(`${kind} ${test.id}${known}: ${result ? result.join(': ') : 'it did not run'}`)
    }
  }
}

console.log(failures.sort().join('\n'))
for (const kind of ['required', 'optimal', 'check']) console.log(`${kind}: ${passed[kind]} of ${all[kind]}`)
const isEnough = passed.required >= REQUIRED_MIN && passed.optimal >= OPTIMAL_MIN
if (!isEnough) console.log(`That is too few: ${REQUIRED_MIN} required and ${OPTIMAL_MIN} optimal ones have to pass.`)
process.exit(isEnough ? 0 : 1)
