// Goes through no-op jobs of BullMQ: node drain.mjs HOST PORT DB JOBS CONCURRENCY.
// It says "filled" when all are queued, begins when its standard input ends, and says
// "done" when the last one is.
import { once } from 'node:events'
import { Queue, Worker } from 'bullmq'
import { Redis } from 'ioredis'

const [host, port, db, jobs, concurrency] = process.argv.slice(2)
const connection = new Redis({ host, port: Number(port), db: Number(db), maxRetriesPerRequest: null })
const all = Number(jobs)

const queue = new Queue('noop', { connection })
const chunk = 500
for (let from = 0; from < all; from += chunk) {
  await queue.addBulk(Array.from({ length: Math.min(chunk, all - from) }, (_, i) => ({
    name: 'noop',
    data: { task: '0wcy7y2fb2', host: `fw${String(from + i).padStart(12, '0')}` },
    opts: { removeOnComplete: true },
  })))
}
console.log('filled')
process.stdin.resume()
await once(process.stdin, 'end')

let done = 0
const worker = new Worker('noop', async () => {}, { connection, concurrency: Number(concurrency) })
worker.on('error', (err) => {
  console.error(err)
  process.exit(1)
})
await new Promise((resolve) => worker.on('completed', () => {
  done++
  if (done === all) resolve()
}))
console.log('done')
await worker.close(true)
await queue.close()
process.exit(0)
